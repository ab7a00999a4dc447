#include "daemon/load.hpp"

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "daemon/option.hpp"
#include "daemon/toml_file.hpp"

namespace settle::daemon {
namespace {

std::vector<std::string> option_names() {
  std::vector<std::string> names;
  for (const auto& one : all_options()) names.emplace_back(one.name);
  return names;
}

class loading {
 public:
  void read_file(const std::string& path) {
    if (path.empty()) return;
    for (const auto& entry : read_toml_file(path, problems_)) {
      const auto* what = find_option(entry.key);
      const auto place = fmt::format("{}:{}", path, entry.line);
      if (what == nullptr)
        problems_.push_back(fmt::format("{}: unknown key '{}'; did you mean '{}'?", place, entry.key,
                                        nearest_name(entry.key, option_names())));
      else
        set_from_file(*what, entry, place);
    }
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
    if (const auto refused = assign(result_.values, what, text))
      problems_.push_back(fmt::format("{}: {} {}", place, what.name, *refused));
    else
      result_.origins[std::string(what.name)] = place;
  }

  void set_from_file(const option& what, const toml_entry& entry, const std::string& place) {
    const bool fits = what.type == kind::bytes || is_quoted(what) == entry.is_text;
    if (fits)
      set(what, entry.text, place);
    else
      problems_.push_back(
          fmt::format("{}: {} is written {} quotes", place, what.name, is_quoted(what) ? "in" : "without"));
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

std::string toml_value(const configuration& values, const option& of) {
  const auto text = shown(values, of);
  if (!is_quoted(of)) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

loaded load_configuration(const inputs& from) {
  loading all;
  all.read_file(from.file);
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
                    toml_value(what.values, one));
    out += fmt::format("{:<40} # {}\n", line, origin == what.origins.end() ? "default" : origin->second);
  }
  return out;
}

}  // namespace settle::daemon
