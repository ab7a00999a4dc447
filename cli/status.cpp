// settle status: where everything stands, without changing or delaying anything.
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/hints.hpp"
#include "cli/status_report.hpp"
#include "cli/syntax.hpp"

namespace settle::cli {
namespace {

// The broker first: an event that moves on in between is then counted as published and not yet as a
// message, which looks like work under way; the other order would show one that nobody has committed.
int show_status(const context& shared) {
  const auto service = open_existing(shared.service_path(), file_kind::service);
  const auto broker = open_broker_view(shared.broker_path());
  const auto at_broker = inspect::read_broker(broker->inspection());
  const auto in_service = inspect::read_service(*service);
  fmt::print("{}", shared.json ? status_json(in_service, at_broker)
                               : with_given(status_text(in_service, at_broker), shared.given));
  return exit_ok;
}

}  // namespace

void add_status(command_syntax to, context& shared) {
  const auto command = to.add_subcommand("status",
                                         "Show outbox, relays, topics, groups and their lag.\n"
                                         "Reads only; safe while other processes write.");
  describe_command(command,
                   "  settle status\n"
                   "  settle status --json | jq .service.outbox.pending");
  command.callback([&shared] { shared.run = [&shared] { return show_status(shared); }; });
}

}  // namespace settle::cli
