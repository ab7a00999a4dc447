#include "cli/help.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

namespace settle::cli {
namespace {

constexpr const char* about =
    "settle: exactly-once effects between services, by a transactional outbox.\n"
    "Commits events with your data, relays them to a broker, and proves that nothing was lost or doubled.";

constexpr const char* examples_and_codes = R"(Examples:
  settle migrate                 create settle-data/ with both files
  settle publish orders order.placed --key 42 --payload '{"order_id":"42"}'
  settle relay --once            bring what is waiting to the broker, then end
  settle tail orders --follow    watch a topic
  settle status                  is anything stuck?
  settle doctor                  what is wrong with the database, and how to fix it
  settle dlq list                what consumers have given up; settle dlq replay sends it again
  settle saga list --held        flows that wait for a person; settle saga show tells what can be done
  settle verify --service orders.db --service warehouse.db --broker broker.db
  settle status --database postgresql://shop@db.internal/shop
  settle status --config settled.toml                all services of a daemon at a glance
  settle dlq list --config settled.toml --service orders

Options above may stand before or after the command; `settle COMMAND --help` shows its own.

Exit codes:
  0  done
  1  verify found something lost, doubled, invented (ghost) or reordered; doctor found a problem;
     dlq replay stopped before the end
  2  usage or invalid input; the same call will fail again
  3  a store is unavailable or busy; try again
  4  done, but the output could not be written, to a full disk, say; the same call would do it again

Errors go to standard error as `settle: MESSAGE`, with --json as
{"error":{"code":CODE,"message":TEXT,"retryable":BOOL}}. If a part was done before the error,
the message says which, and "done" in the JSON.)";

class layout final : public CLI::Formatter {
 public:
  layout() {
    column_width(28);
    label("Positionals", "Arguments");
  }

  // "settle [OPTIONS] COMMAND", not "settle [OPTIONS] SUBCOMMAND"
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_parent() != nullptr) return "\n" + Formatter::make_usage(app, name);
    return "\nUsage: settle [OPTIONS] COMMAND [ARGUMENTS]\n";
  }

  // The description already explains the command; the default adds what the parser requires.
  std::string make_description(const CLI::App* app) const override { return app->get_description() + "\n"; }

  // In the list of commands the first line is enough; the command's own page has the rest.
  std::string make_subcommand(const CLI::App* sub) const override {
    const auto all = sub->get_description();
    return fmt::format("  {:<{}}{}\n", sub->get_name(), get_column_width() - 2,
                       all.substr(0, all.find('\n')));
  }
};

}  // namespace

void describe_program(CLI::App& program) {
  program.name("settle");
  program.description(about);
  program.footer(examples_and_codes);
  program.formatter(std::make_shared<layout>());
  program.get_help_ptr()->description("Show this help and exit");
}

void describe_command(command_syntax command, const char* examples) {
  auto& described = command.app();
  described.group("Commands");
  described.footer(
      std::string("Examples:\n") + examples +
      "\n\nGlobal options: --data DIR, --database DB, --broker FILE, --config FILE, --service NAME, --json;\n"
      "see `settle --help`.");
  described.get_help_ptr()->description("Show this help and exit");
}

}  // namespace settle::cli
