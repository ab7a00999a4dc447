#include "config/load.hpp"

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "config/load_services.hpp"
#include "config/option.hpp"
#include "config/reading.hpp"
#include "config/toml_file.hpp"

namespace settle::config {
namespace {

// What somebody who wrote `key` may have meant beside a setting of the whole file: one of a table with a
// name.
std::vector<std::string> names_in_tables(const std::string& key) {
  const auto first = key.find('.');
  const auto last = key.rfind('.');
  if (first == last) return {};
  const auto name = key.substr(first, last - first + 1);
  std::vector<std::string> names;
  const auto add = [&](std::string_view table, const auto& options) {
    for (const auto& one : options) names.push_back(fmt::format("{}{}{}", table, name, one.name));
  };
  add("webhook", webhook_options());
  add("service", service_options());
  add("broker", broker_options());
  return names;
}

class loading {
 public:
  explicit loading(const inputs& from) : all_{from.file, from.environment} {}

  void run(const inputs& from) {
    const auto entries = sort_entries(from.file.empty() ? std::vector<toml_entry>()
                                                        : read_toml_file(from.file, all_.problems));
    for (const auto& entry : entries.top)
      if (!entry.is_table)
        read_setting(all_, entry, entry.key, all_options(), result_.values, names_in_tables(entry.key));
    read_environment(from.environment);
    read_flags(from.flags);
    load_services(all_, entries, result_.values);
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
    if (!all_.problems.empty()) throw configuration_error(fmt::format("{}", fmt::join(all_.problems, "\n")));
    result_.origins = std::move(all_.origins);
    return std::move(result_);
  }

 private:
  void set(const option& what, const std::string& text, const std::string& place) {
    if (const auto refused = assign(result_.values, what, text))
      all_.problems.push_back(fmt::format("{}: {} {}", place, what.name, *refused));
    else
      all_.origins[std::string(what.name)] = place;
  }

  // Other variables of this prefix may be there for other reasons (Kubernetes makes some), so only what
  // looks like a slip is worth a word.
  void warn_if_mistyped(const std::string& name, const std::vector<std::string>& names) {
    constexpr std::size_t slip_max = 2;
    const auto nearest = nearest_name(name, names);
    if (name != nearest && edit_distance(name, nearest) <= slip_max)
      result_.warnings.push_back(fmt::format("{} is not a setting; did you mean {}?", name, nearest));
  }

  reading all_;
  loaded result_;
};

}  // namespace

loaded load_configuration(const inputs& from) {
  loading all(from);
  all.run(from);
  return all.result();
}

std::string print_configuration(const loaded& what) {
  return print_table(what.values, all_options(), "", "", what.origins) +
         print_services(what.values, what.origins);
}

}  // namespace settle::config
