// settle outbox: what an operator does to an outbox by hand.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/text.hpp"
#include "queries/cli.hpp"

namespace settle::cli {
namespace {

// It writes every pending event anew, however many those are.
constexpr duration rebase_timeout = std::chrono::hours(1);

void explain_rebase(const database& db) {
  throw failure(
      errc::invalid_argument,
      fmt::format(
          "rebase is for {} after a restore or a failover: it gives every event that is not published a new "
          "number "
          "and a new transaction, in their order, and then relays go on. Make sure first that this is the "
          "server "
          "that is to be used from now on. An event that was published after the backup was taken may be "
          "published a second time; consumers skip it as long as they keep its record. Who publishes "
          "meanwhile "
          "waits. If that is what you want, repeat it with --yes",
          db.name()));
}

int rebase(const context& shared, bool confirmed) {
  if (!shared.on_postgres())
    throw failure(errc::invalid_argument,
                  "rebase is for PostgreSQL; on files `settle restore` does by itself what is needed");
  const auto db = open_existing(shared.service_path(), file_kind::service, {}, rebase_timeout);
  if (!confirmed) explain_rebase(*db);
  auto tx = db->begin();
  const auto waiting = tx.execute(queries::cli::rebase_outbox)[0][0].integer();
  tx.wake_on_commit();
  tx.commit();
  if (shared.json)
    fmt::print("{}\n", boost::json::serialize(boost::json::object{{"pending", waiting}}));
  else
    fmt::print("rebased {}; {} {} to be published, and relays go on\n", for_terminal(db->name()),
               counted(waiting, "event"), waiting == 1 ? "is" : "are");
  return exit_ok;
}

void add_rebase(CLI::App& to, context& shared) {
  auto* command = to.add_subcommand("rebase",
                                    "Let relays go on after PostgreSQL was restored or a standby took over\n"
                                    "(cluster_changed). To be run by the owner of the schema settle, once.");
  const auto confirmed = std::make_shared<bool>(false);
  command->add_flag("--yes", *confirmed, "Do it; without this it is only explained, exit code 2")
      ->option_text(" ");
  describe_command(*command, "  settle outbox rebase --database 'host=db.internal dbname=shop' --yes");
  command->callback(
      [&shared, confirmed] { shared.run = [&shared, confirmed] { return rebase(shared, *confirmed); }; });
}

}  // namespace

void add_outbox(CLI::App& to, context& shared) {
  auto* command = to.add_subcommand("outbox",
                                    "Repair an outbox: rebase.\n"
                                    "See `settle outbox COMMAND --help`.");
  describe_command(*command, "  settle outbox rebase --yes");
  command->require_subcommand(1);
  add_rebase(*command, shared);
}

}  // namespace settle::cli
