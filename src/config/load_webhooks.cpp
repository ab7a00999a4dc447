#include "config/load_webhooks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/nearest_name.hpp"
#include "base/text.hpp"
#include "config/option.hpp"
#include "settle/error.hpp"

namespace settle::config {
namespace {

constexpr std::size_t name_bytes_max = 100;

struct part {
  std::string_view option;  // empty: the table is
  const toml_entry* entry = nullptr;
};

// One table of the file, until it is a source.
class source_loading {
 public:
  source_loading(reading& all, std::string_view prefix, std::string_view name, const std::vector<part>& parts)
      : all_(all), prefix_(prefix), name_(name), parts_(parts), made_(webhook_defaults(name, scheme())) {}

  void run(std::vector<webhook_settings>& into) {
    const auto before = all_.problems.size();
    if (!is_table_name(name_, name_bytes_max))
      return all_.refuse(first_line(), "the name of a source in [webhook.NAME]",
                         "is 1 to 100 letters, digits, - and _");
    for (const auto& one : parts_)
      if (!one.option.empty()) read(one);
    if (scheme().empty()) missing("scheme", "stripe, standard or hmac");
    if (all_.problems.size() > before) return;
    if (text_of(made_.source.event_id).empty()) return missing("event_id", "it tells copies from new events");
    read_keys();
    if (all_.problems.size() == before) try_out(into);
  }

 private:
  std::size_t first_line() const { return parts_.front().entry->line; }
  std::size_t line_of(std::string_view option) const {
    const auto found = std::ranges::find(parts_, option, &part::option);
    return found == parts_.end() ? first_line() : found->entry->line;
  }
  std::string full(std::string_view option) const { return fmt::format("{}{}.{}", prefix_, name_, option); }

  // Others have their defaults from it, so it is looked for first.
  std::string_view scheme() const {
    const auto found = std::ranges::find(parts_, "scheme", &part::option);
    return found == parts_.end() ? std::string_view() : std::string_view(found->entry->text);
  }

  bool is_known_scheme() const {
    webhook_settings unused;
    return !assign(unused, webhook_options().front(), scheme());
  }

  void missing(std::string_view option, std::string_view why) {
    all_.refuse(first_line(), full(option), fmt::format("is missing: {}", why));
  }

  void read(const part& one) {
    const auto known = std::ranges::find(webhook_options(), one.option, &webhook_option::name);
    const auto line = one.entry->line;
    const auto name = full(one.option);
    if (known == webhook_options().end())
      return all_.refuse(line, fmt::format("unknown key '{}';", name),
                         fmt::format("did you mean '{}'?", nearest_name(name, names())));
    if (const auto why = assign_written(made_, *known, one.entry->text, one.entry->is_text))
      return all_.refuse(line, name, *why);
    if (is_known_scheme() && !is_for(*known, scheme()))
      return all_.refuse(line, name, fmt::format("means nothing with scheme = \"{}\"", scheme()));
    all_.origins[name] = all_.place(line);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& one : webhook_options()) all.push_back(full(one.name));
    return all;
  }

  void read_keys() {
    if (made_.keys_env.empty() && made_.keys_file.empty())
      return missing("keys_env", "the variable that holds its keys, or keys_file");
    if (!made_.keys_env.empty()) take_keys("keys_env", text_of_variable(all_.environment, made_.keys_env));
    if (!made_.keys_file.empty()) take_keys("keys_file", text_of_file(made_.keys_file));
  }

  void take_keys(std::string_view option, const text_elsewhere& at) {
    if (at.text)
      add_keys(option, *at.text);
    else
      all_.refuse(line_of(option), full(option), at.problem);
  }

  void add_keys(std::string_view option, const std::string& content) {
    auto& keys = made_.source.signature.keys;
    const auto before = keys.size();
    std::istringstream lines(content);
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (const auto key = without_outer_space(line); !key.empty()) keys.emplace_back(key);
    }
    if (keys.size() == before && !content.empty())
      all_.refuse(line_of(option), full(option), "names something that holds no key");
  }

  // The library knows best what it cannot work with.
  void try_out(std::vector<webhook_settings>& into) try {
    const webhook::inbox tried(made_.source);
    into.push_back(std::move(made_));
  } catch (const error& e) {
    all_.refuse(first_line(), fmt::format("{}{}:", prefix_, name_), e.what());
  }

  reading& all_;
  std::string_view prefix_;
  std::string_view name_;
  const std::vector<part>& parts_;
  webhook_settings made_;
};

}  // namespace

std::vector<webhook_settings> load_webhooks(reading& all, std::span<const toml_entry> entries,
                                            std::string_view prefix) {
  std::map<std::string_view, std::vector<part>> tables;
  for (const auto& entry : entries) {
    const auto rest = std::string_view(entry.key).substr(prefix.size());
    const auto dot = rest.rfind('.');
    if (entry.is_table)
      tables[rest].push_back({"", &entry});
    else if (dot == std::string_view::npos)
      all.refuse(entry.line, fmt::format("'{}'", rest),
                 fmt::format("stands in the table of a source, such as [{}stripe]", prefix));
    else
      tables[rest.substr(0, dot)].push_back({rest.substr(dot + 1), &entry});
  }
  if (tables.size() > webhook_sources_max)
    all.problems.push_back(fmt::format("{}: there are {} tables [{}NAME], and {} are allowed", all.file,
                                       tables.size(), prefix, webhook_sources_max));
  std::vector<webhook_settings> sources;
  for (const auto& [name, parts] : tables) source_loading(all, prefix, name, parts).run(sources);
  return sources;
}

std::string print_webhooks(std::span<const webhook_settings> sources, std::string_view prefix,
                           const origin_map& origins) {
  std::string out;
  for (const auto& settings : sources) {
    const auto& source = settings.source;
    out += fmt::format("\n[{}{}]\n", prefix, source.name);
    for (const auto& one : webhook_options()) {
      if (!is_for(one, word_of(source.signature.how))) continue;
      const auto origin = origins.find(fmt::format("{}{}.{}", prefix, source.name, one.name));
      out += fmt::format("{:<40} # {}\n", fmt::format("{} = {}", one.name, written(settings, one)),
                         origin == origins.end() ? "default" : origin->second);
    }
    out += fmt::format("# keys: {} (hidden)\n", source.signature.keys.size());
  }
  return out;
}

}  // namespace settle::config
