// settle help: the same pages as --help, for those who ask in this order.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/help.hpp"
#include "cli/usage.hpp"

namespace settle::cli {
namespace {

int show_help(const CLI::App& program, const std::vector<std::string>& path) {
  const auto* asked = &program;
  auto name = program.get_name();
  for (const auto& one : path) {
    asked = &command_named(*asked, one);
    name += " " + one;
  }
  fmt::print("{}", asked->get_formatter()->make_help(asked, name, CLI::AppFormatMode::Normal));
  return exit_ok;
}

}  // namespace

void add_help(command_syntax to, context& shared) {
  const auto command = to.add_subcommand("help", "Show the help of a command: `settle help dlq replay`.");
  const auto path = std::make_shared<std::vector<std::string>>();
  command.add_option("COMMAND", *path, "The command, and the one below it. Default: all of them")
      .option_text(" ");
  describe_command(command, "  settle help\n  settle help status\n  settle help dlq replay");
  command.callback([to, &shared, path] { shared.run = [to, path] { return show_help(to.app(), *path); }; });
}

}  // namespace settle::cli
