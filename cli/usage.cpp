#include "cli/usage.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/nearest_name.hpp"
#include "cli/failure.hpp"

namespace settle::cli {
namespace {

// The innermost command that was recognized.
const CLI::App& innermost(const CLI::App& program) {
  const auto* at = &program;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
  return *at;
}

// "settle dlq replay"
std::string path_of(const CLI::App& command) {
  const auto* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : path_of(*parent) + " " + command.get_name();
}

std::vector<std::string> commands_of(const CLI::App& of) {
  std::vector<std::string> names;
  for (const auto* one : of.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(one->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& of) {
  std::vector<std::string> names;
  for (const auto* at = &of; at != nullptr; at = at->get_parent())
    for (const auto* one : at->get_options())
      if (one->nonpositional()) names.push_back("--" + one->get_single_name());
  return names;
}

// "; did you mean status?", if it is near enough to be that.
std::string suggestion(const std::string& mistyped, const std::vector<std::string>& known) {
  const auto nearest = nearest_name(mistyped, known);
  const auto near_enough = 1 + nearest.size() / 3;
  if (nearest.empty() || edit_distance(mistyped, nearest) > near_enough) return {};
  return fmt::format("; did you mean {}?", nearest);
}

std::string no_command(const CLI::App& within, const std::string& name) {
  return fmt::format("there is no command '{} {}'{}", path_of(within), name,
                     suggestion(name, commands_of(within)));
}

}  // namespace

std::string why_refused(const CLI::App& program, const CLI::ParseError& e) {
  const auto& command = innermost(program);
  const auto rest = program.remaining(true);
  std::string why = e.what();
  if (e.get_name() == "RequiredError" && command.get_require_subcommand_min() > 0) {
    why = rest.empty() ? fmt::format("`{}` needs a command", path_of(command))
                       : no_command(command, rest.front());
  } else if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr && !rest.empty()) {
    const auto option = std::ranges::find_if(rest, [](const auto& one) { return one.starts_with('-'); });
    const auto& extra = option == rest.end() ? rest.front() : *option;  // others may belong to it
    const auto name = extra.substr(0, extra.find('='));
    why = name.starts_with('-')
              ? fmt::format("there is no option {}{}", name, suggestion(name, options_of(command)))
              : fmt::format("'{}' is more than `{}` takes", name, path_of(command));
  }
  const bool asks = why.ends_with('?');
  return fmt::format("{}{} `{} --help`", why, asks ? " See" : "; see", path_of(command));
}

bool is_typed(const CLI::App& program, const char* name, const char* variable, const std::string& content) {
  const char* set = variable == nullptr ? nullptr : std::getenv(variable);
  return program.get_option(name)->count() > 0 && (set == nullptr || content != set);
}

const CLI::App& command_named(const CLI::App& within, const std::string& name) {
  for (const auto* one : within.get_subcommands([](const CLI::App*) { return true; }))
    if (one->get_name() == name) return *one;
  throw failure(errc::invalid_argument,
                fmt::format("{}{} `{} --help`", no_command(within, name),
                            no_command(within, name).ends_with('?') ? " See" : "; see", path_of(within)));
}

}  // namespace settle::cli
