#include "daemon/config/load.hpp"

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "daemon/config/load_webhooks.hpp"
#include "daemon/config/option.hpp"
#include "daemon/config/toml_file.hpp"

namespace settle::daemon {
namespace {

// What somebody who wrote `key` may have meant: a setting, or one of a source of webhooks.
std::vector<std::string> names_like(const std::string& key) {
  std::vector<std::string> names;
  for (const auto& one : all_options()) names.emplace_back(one.name);
  const auto first = key.find('.');
  const auto last = key.rfind('.');
  if (first != last)
    for (const auto& one : webhook_options())
      names.push_back(fmt::format("webhook{}{}", key.substr(first, last - first + 1), one.name));
  return names;
}

class loading {
 public:
  void read_file(const std::string& path, const std::vector<std::string>& environment) {
    if (path.empty()) return;
    std::vector<toml_entry> of_webhooks;
    for (auto& entry : read_toml_file(path, problems_))
      if (entry.key.starts_with("webhook."))
        of_webhooks.push_back(std::move(entry));
      else if (!entry.is_table)
        read_entry(path, entry);
    auto webhooks = load_webhooks({path, of_webhooks, environment});
    problems_.insert(problems_.end(), webhooks.problems.begin(), webhooks.problems.end());
    result_.values.webhooks = std::move(webhooks.sources);
    result_.origins.merge(webhooks.origins);
  }

  void read_environment(const std::vector<std::string>& environment) {
    std::map<std::string, const option*> known;
    std::vector<std::string> names{"SETTLE_CONFIG"};
    for (const auto& one : all_options()) {
      known.emplace(environment_of(one), &one);
      names.push_back(environment_of(one));
    }
    for (const auto& variable : environment) {
      const auto equals = variable.find('=');
      const auto name = variable.substr(0, equals);
      if (equals == std::string::npos || equals + 1 == variable.size() || !name.starts_with("SETTLE_"))
        continue;
      const auto found = known.find(name);
      if (found != known.end())
        set(*found->second, variable.substr(equals + 1), name);
      else
        warn_if_mistyped(name, names);
    }
  }

  void read_flags(const std::map<std::string, std::string>& flags) {
    for (const auto& [name, text] : flags)
      if (const auto* what = find_option(name)) set(*what, text, flag_of(*what));
  }

  loaded result() {
    if (problems_.empty()) return std::move(result_);
    throw configuration_error(fmt::format("{}", fmt::join(problems_, "\n")));
  }

 private:
  void set(const option& what, const std::string& text, const std::string& place) {
    note(what, assign(result_.values, what, text), place);
  }

  void note(const option& what, const std::optional<std::string>& refused, const std::string& place) {
    if (refused)
      problems_.push_back(fmt::format("{}: {} {}", place, what.name, *refused));
    else
      result_.origins[std::string(what.name)] = place;
  }

  void read_entry(const std::string& path, const toml_entry& entry) {
    const auto* what = find_option(entry.key);
    const auto place = fmt::format("{}:{}", path, entry.line);
    if (what == nullptr)
      problems_.push_back(fmt::format("{}: unknown key '{}'; did you mean '{}'?", place, entry.key,
                                      nearest_name(entry.key, names_like(entry.key))));
    else
      note(*what, assign_written(result_.values, *what, entry.text, entry.is_text), place);
  }

  // Other variables of this prefix may be there for other reasons (Kubernetes makes some), so only what
  // looks like a slip is worth a word.
  void warn_if_mistyped(const std::string& name, const std::vector<std::string>& names) {
    constexpr std::size_t slip_max = 2;
    const auto nearest = nearest_name(name, names);
    if (name != nearest && edit_distance(name, nearest) <= slip_max)
      result_.warnings.push_back(fmt::format("{} is not a setting; did you mean {}?", name, nearest));
  }

  loaded result_;
  std::vector<std::string> problems_;
};

}  // namespace

loaded load_configuration(const inputs& from) {
  loading all;
  all.read_file(from.file, from.environment);
  all.read_environment(from.environment);
  all.read_flags(from.flags);
  return all.result();
}

std::string print_configuration(const loaded& what) {
  std::string out;
  std::string_view section;
  for (const auto& one : all_options()) {
    const auto dot = one.name.find('.');
    const auto here = dot == std::string_view::npos ? std::string_view() : one.name.substr(0, dot);
    if (here != section) out += fmt::format("\n[{}]\n", here);
    section = here;
    const auto origin = what.origins.find(one.name);
    const auto line =
        fmt::format("{} = {}", dot == std::string_view::npos ? one.name : one.name.substr(dot + 1),
                    written(what.values, one));
    out += fmt::format("{:<40} # {}\n", line, origin == what.origins.end() ? "default" : origin->second);
  }
  return out + print_webhooks(what.values.webhooks, what.origins);
}

}  // namespace settle::daemon
