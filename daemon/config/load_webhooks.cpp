#include "daemon/config/load_webhooks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/nearest_name.hpp"
#include "base/text.hpp"
#include "daemon/config/option.hpp"
#include "settle/error.hpp"

namespace settle::daemon {
namespace {

constexpr std::string_view prefix = "webhook.";
constexpr std::size_t name_bytes_max = 100;
constexpr std::size_t keys_bytes_max = 64 * 1024;
constexpr std::string_view name_characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

struct part {
  std::string_view option;  // empty: the table is
  const toml_entry* entry = nullptr;
};

// One table of the file, until it is a source.
class source_loading {
 public:
  source_loading(const webhooks_input& from, std::string_view name, const std::vector<part>& parts,
                 loaded_webhooks& into)
      : from_(from), name_(name), parts_(parts), into_(into), made_(webhook_defaults(name, scheme())) {}

  void run() {
    const auto before = into_.problems.size();
    if (!is_name(name_))
      return refuse(first_line(), "the name of a source in [webhook.NAME]",
                    "is 1 to 100 letters, digits, - and _");
    for (const auto& one : parts_)
      if (!one.option.empty()) read(one);
    if (scheme().empty()) missing("scheme", "stripe, standard or hmac");
    if (into_.problems.size() > before) return;
    if (text_of(made_.source.event_id).empty()) return missing("event_id", "it tells copies from new events");
    read_keys();
    if (into_.problems.size() == before) try_out();
  }

 private:
  static bool is_name(std::string_view text) {
    return !text.empty() && text.size() <= name_bytes_max &&
           text.find_first_not_of(name_characters) == std::string_view::npos;
  }

  std::size_t first_line() const { return parts_.front().entry->line; }
  std::size_t line_of(std::string_view option) const {
    const auto found = std::ranges::find(parts_, option, &part::option);
    return found == parts_.end() ? first_line() : found->entry->line;
  }
  std::string full(std::string_view option) const { return fmt::format("{}{}.{}", prefix, name_, option); }

  // Others have their defaults from it, so it is looked for first.
  std::string_view scheme() const {
    const auto found = std::ranges::find(parts_, "scheme", &part::option);
    return found == parts_.end() ? std::string_view() : std::string_view(found->entry->text);
  }

  bool is_known_scheme() const {
    webhook_settings unused;
    return !assign(unused, webhook_options().front(), scheme());
  }

  void refuse(std::size_t line, std::string_view what, std::string_view why) {
    into_.problems.push_back(fmt::format("{}:{}: {} {}", from_.file, line, what, why));
  }
  void missing(std::string_view option, std::string_view why) {
    refuse(first_line(), full(option), fmt::format("is missing: {}", why));
  }

  void read(const part& one) {
    const auto known = std::ranges::find(webhook_options(), one.option, &webhook_option::name);
    const auto line = one.entry->line;
    const auto name = full(one.option);
    if (known == webhook_options().end())
      return refuse(line, fmt::format("unknown key '{}';", name),
                    fmt::format("did you mean '{}'?", nearest_name(name, names())));
    if (const auto why = assign_written(made_, *known, one.entry->text, one.entry->is_text))
      return refuse(line, name, *why);
    if (is_known_scheme() && !is_for(*known, scheme()))
      return refuse(line, name, fmt::format("means nothing with scheme = \"{}\"", scheme()));
    into_.origins[name] = fmt::format("{}:{}", from_.file, line);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& one : webhook_options()) all.push_back(full(one.name));
    return all;
  }

  void read_keys() {
    if (made_.keys_env.empty() && made_.keys_file.empty())
      return missing("keys_env", "the variable that holds its keys, or keys_file");
    if (!made_.keys_env.empty()) add_keys("keys_env", variable(made_.keys_env));
    if (!made_.keys_file.empty()) add_keys("keys_file", file(made_.keys_file));
  }

  // Neither quotes what it was given: it may be the key itself, by mistake.
  std::string variable(const std::string& name) {
    for (const auto& one : from_.environment)
      if (one.starts_with(name + "=")) return one.substr(name.size() + 1);
    refuse(line_of("keys_env"), full("keys_env"), "names a variable that is not set");
    return {};
  }
  std::string file(const std::string& path) {
    std::string content(keys_bytes_max, '\0');
    std::ifstream in(path, std::ios::binary);
    const bool readable = in && (in.read(content.data(), keys_bytes_max).good() || in.eof());
    content.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
    if (readable && content.size() < keys_bytes_max) return content;
    refuse(line_of("keys_file"), full("keys_file"),
           readable ? "names a file that is too large" : "names a file that cannot be read");
    return {};
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
      refuse(line_of(option), full(option), "names something that holds no key");
  }

  // The library knows best what it cannot work with.
  void try_out() try {
    const webhook::inbox tried(made_.source);
    into_.sources.push_back(std::move(made_));
  } catch (const error& e) {
    refuse(first_line(), fmt::format("{}{}:", prefix, name_), e.what());
  }

  const webhooks_input& from_;
  std::string_view name_;
  const std::vector<part>& parts_;
  loaded_webhooks& into_;
  webhook_settings made_;
};

}  // namespace

loaded_webhooks load_webhooks(const webhooks_input& from) {
  loaded_webhooks all;
  std::map<std::string_view, std::vector<part>> tables;
  for (const auto& entry : from.entries) {
    const auto rest = std::string_view(entry.key).substr(prefix.size());
    const auto dot = rest.rfind('.');
    if (entry.is_table)
      tables[rest].push_back({"", &entry});
    else if (dot == std::string_view::npos)
      all.problems.push_back(
          fmt::format("{}:{}: '{}' stands in the table of a source, such as [webhook.stripe]", from.file,
                      entry.line, rest));
    else
      tables[rest.substr(0, dot)].push_back({rest.substr(dot + 1), &entry});
  }
  if (tables.size() > webhook_sources_max)
    all.problems.push_back(fmt::format("{}: there are {} tables [webhook.NAME], and {} are allowed",
                                       from.file, tables.size(), webhook_sources_max));
  for (const auto& [name, parts] : tables) source_loading(from, name, parts, all).run();
  return all;
}

std::string print_webhooks(std::span<const webhook_settings> sources,
                           const std::map<std::string, std::string, std::less<>>& origins) {
  std::string out;
  for (const auto& settings : sources) {
    const auto& source = settings.source;
    out += fmt::format("\n[webhook.{}]\n", source.name);
    for (const auto& one : webhook_options()) {
      if (!is_for(one, word_of(source.signature.how))) continue;
      const auto origin = origins.find(fmt::format("webhook.{}.{}", source.name, one.name));
      out += fmt::format("{:<40} # {}\n", fmt::format("{} = {}", one.name, written(settings, one)),
                         origin == origins.end() ? "default" : origin->second);
    }
    out += fmt::format("# keys: {} (hidden)\n", source.signature.keys.size());
  }
  return out;
}

}  // namespace settle::daemon
