// Reading the tables of a file: what every one of them needs, and what is found.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest_name.hpp"
#include "config/option.hpp"
#include "config/toml_file.hpp"

namespace settle::config {

using origin_map = std::map<std::string, std::string, std::less<>>;  // "relay.source" → "settled.toml:7"

struct reading {
  std::string file;                             // for "settled.toml:7"
  const std::vector<std::string>& environment;  // NAME=value
  std::vector<std::string> problems = {};
  origin_map origins = {};

  std::string place(std::size_t line) const { return fmt::format("{}:{}", file, line); }
  void refuse(std::size_t line, std::string_view what, std::string_view why) {
    problems.push_back(fmt::format("{}: {} {}", place(line), what, why));
  }
};

// A text that stands somewhere else than in the configuration, or why there is none, in words that follow its
// name. Neither quotes anything: it may be the secret itself, by mistake.
struct text_elsewhere {
  std::optional<std::string> text;
  std::string_view problem;
};
text_elsewhere text_of_variable(const std::vector<std::string>& environment, const std::string& name);
text_elsewhere text_of_file(const std::string& path);
// Without what stands around it.
std::string_view secret_in(std::string_view text);

// The name of a table: letters, digits, - and _, as many as `bytes_max` at most.
bool is_table_name(std::string_view text, std::size_t bytes_max);

// Settings that may hold a password, by a name with a suffix: database_env, database_file.
struct elsewhere_name {
  std::string_view option;
  bool is_variable = false;
};
std::optional<elsewhere_name> elsewhere_name_of(std::string_view name);

// The setting `inside` of a table, whose whole name is the entry's. One that is not known is refused with the
// nearest name of the table or of `others`.
template <class Settings>
void read_setting(reading& all, const toml_entry& entry, std::string_view inside,
                  std::span<const option_of<Settings>> known, Settings& to,
                  const std::vector<std::string>& others = {}) {
  const auto assigned = [&](const std::optional<std::string>& refused, std::string_view name,
                            const std::string& from) {
    if (refused)
      all.refuse(entry.line, name, *refused);
    else
      all.origins[std::string(name)] = all.place(entry.line) + from;
  };
  if (const auto found = std::ranges::find(known, inside, &option_of<Settings>::name); found != known.end())
    return assigned(assign_written(to, *found, entry.text, entry.is_text), entry.key, "");
  if (const auto elsewhere = elsewhere_name_of(inside)) {
    const auto found = std::ranges::find(known, elsewhere->option, &option_of<Settings>::name);
    if (found != known.end() && may_be_elsewhere(*found)) {
      const auto at =
          elsewhere->is_variable ? text_of_variable(all.environment, entry.text) : text_of_file(entry.text);
      if (!at.text) return all.refuse(entry.line, entry.key, at.problem);
      const auto name = std::string_view(entry.key).substr(0, entry.key.rfind('_'));
      return assigned(assign(to, *found, secret_in(*at.text)), name,
                      elsewhere->is_variable ? ", from the environment" : ", from a file");
    }
  }
  auto names = others;
  const auto before = entry.key.substr(0, entry.key.size() - inside.size());
  for (const auto& one : known) names.push_back(before + std::string(one.name));
  all.refuse(entry.line, fmt::format("unknown key '{}';", entry.key),
             fmt::format("did you mean '{}'?", nearest_name(entry.key, names)));
}

// The settings of a table as a file has them, each with a comment that says where it came from. `table` is
// "service.orders" or empty; what it does not say itself comes from the setting of the same name below
// `otherwise`.
template <class Settings>
std::string print_table(const Settings& from, std::span<const option_of<Settings>> known,
                        std::string_view table, std::string_view otherwise, const origin_map& origins) {
  const auto below = [](std::string_view of, std::string_view name) {
    return of.empty() ? std::string(name) : fmt::format("{}.{}", of, name);
  };
  const auto origin_of = [&](std::string_view name) -> std::string {
    for (const auto& full : {below(table, name), below(otherwise, name)})
      if (const auto found = origins.find(full); found != origins.end()) return found->second;
    return "default";
  };
  std::string out = table.empty() ? "" : fmt::format("\n[{}]\n", table);
  std::string_view section;
  for (const auto& one : known) {
    const auto dot = one.name.find('.');
    const auto here = dot == std::string_view::npos ? std::string_view() : one.name.substr(0, dot);
    if (here != section) out += fmt::format("\n[{}]\n", below(table, here));
    section = here;
    const auto name = dot == std::string_view::npos ? one.name : one.name.substr(dot + 1);
    out +=
        fmt::format("{:<40} # {}\n", fmt::format("{} = {}", name, written(from, one)), origin_of(one.name));
  }
  return out;
}

}  // namespace settle::config
