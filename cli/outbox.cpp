// settle outbox: what an operator does to an outbox by hand.
#include "settle/outbox.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "base/time_text.hpp"
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/syntax.hpp"
#include "cli/text.hpp"
#include "once/claim_epochs.hpp"
#include "outbox/rebase.hpp"

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

int rebase(context& shared, bool confirmed) {
  if (!shared.on_postgres())
    throw failure(errc::invalid_argument,
                  "rebase is for PostgreSQL; on files `settle restore` does by itself what is needed");
  const auto db =
      open_existing(shared.service_path(), file_kind::service, {.statement_timeout = rebase_timeout});
  if (!confirmed) explain_rebase(*db);
  auto tx = db->begin();
  const auto waiting = outbox::rebase(tx);
  keys::skip_claim_epochs(tx);
  tx.wake_on_commit();
  tx.commit();
  shared.note_done(fmt::format("{} was rebased", db->name()));
  if (shared.json)
    fmt::print("{}\n", boost::json::serialize(boost::json::object{{"pending", waiting}}));
  else
    fmt::print("rebased {}; {} {} to be published, and relays go on\n", for_terminal(db->name()),
               counted(waiting, "event"), waiting == 1 ? "is" : "are");
  return exit_ok;
}

void add_rebase(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("rebase",
                        "Let relays go on after PostgreSQL was restored or a standby took over\n"
                        "(cluster_changed). To be run by the owner of the schema settle, once.");
  const auto confirmed = std::make_shared<bool>(false);
  command.add_flag("--yes", *confirmed, "Do it; without this it is only explained, exit code 2")
      .option_text(" ");
  describe_command(command, "  settle outbox rebase --database 'host=db.internal dbname=shop' --yes");
  command.callback(
      [&shared, confirmed] { shared.run = [&shared, confirmed] { return rebase(shared, *confirmed); }; });
}

void print_failed(const std::vector<failed_event>& found, bool json) {
  if (json) {
    boost::json::array all;
    for (const auto& one : found)
      all.push_back({{"id", one.id.text()},
                     {"topic", safe_json_text(one.topic)},
                     {"type", safe_json_text(one.type)},
                     {"key", safe_json_text(one.key)},
                     {"attempts", one.attempts},
                     {"last_error", safe_json_text(one.last_error)},
                     {"created_at", to_rfc3339(one.created_at)},
                     {"failed_at", to_rfc3339(one.failed_at)}});
    fmt::print("{}\n", boost::json::serialize(all));
    return;
  }
  if (found.empty()) fmt::print("no event has failed\n");
  for (const auto& one : found)
    fmt::print("{}  {}  {} {} {}\n  {} after {}: {}\n", one.id.text(), to_rfc3339(one.failed_at),
               for_terminal(one.topic), for_terminal(one.type), for_terminal(one.key), "given up",
               counted(one.attempts, "attempt"), for_terminal(one.last_error));
}

void add_failed(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("failed", "List events that the broker has rejected too often, oldest first.");
  const auto limit = std::make_shared<std::size_t>(100);
  command.add_option("--limit", *limit, "At most so many. Default: 100")
      .option_text("N")
      .between(1, 1'000'000);
  describe_command(command, "  settle outbox failed\n  settle outbox failed --json | jq -r '.[].id'");
  command.callback([&shared, limit] {
    shared.run = [&shared, limit] {
      const auto db = open_existing(shared.service_path(), file_kind::service);
      print_failed(failed_events(*db, *limit), shared.json);
      return exit_ok;
    };
  });
}

int requeue(context& shared, const std::vector<std::string>& ids, bool all) {
  if (all == !ids.empty())
    throw failure(errc::invalid_argument, "requeue takes either the ids of events or --all");
  std::vector<event_id> wanted;
  for (const auto& text : ids) {
    const auto id = event_id::parse(text);
    if (!id) throw failure(errc::invalid_argument, fmt::format("'{}' is no event id", text));
    wanted.push_back(*id);
  }
  const auto db = open_existing(shared.service_path(), file_kind::service);
  std::int64_t count = all ? requeue_failed(*db) : 0;
  const auto note = [&] {
    if (count > 0) shared.note_done(fmt::format("{} requeued", counted(count, "event")));
  };
  note();
  for (const auto& id : wanted) {
    count += requeue_failed(*db, id);
    note();
  }
  if (shared.json)
    fmt::print("{}\n", boost::json::serialize(boost::json::object{{"requeued", count}}));
  else
    fmt::print("{} requeued; relays offer {} again within a few seconds\n", counted(count, "event"),
               count == 1 ? "it" : "them");
  if (!all && count < static_cast<std::int64_t>(wanted.size()))
    throw failure(errc::invalid_argument,
                  fmt::format("{} of the {} ids name no event that has failed; see `settle outbox failed`",
                              static_cast<std::int64_t>(wanted.size()) - count, wanted.size()));
  return exit_ok;
}

void add_requeue(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("requeue",
                        "Offer failed events to the broker again, with all their attempts.\n"
                        "They keep their ids; what was published of their key meanwhile comes first.");
  const auto ids = std::make_shared<std::vector<std::string>>();
  const auto all = std::make_shared<bool>(false);
  command.add_option("ID", *ids, "Events to requeue").option_text(" ");
  command.add_flag("--all", *all, "Every event that has failed").option_text(" ");
  describe_command(
      command, "  settle outbox requeue --all\n  settle outbox requeue 01890a5d-ac96-774b-bcce-b302099a8057");
  command.callback(
      [&shared, ids, all] { shared.run = [&shared, ids, all] { return requeue(shared, *ids, *all); }; });
}

}  // namespace

void add_outbox(command_syntax to, context& shared) {
  const auto command = to.add_subcommand("outbox",
                                         "Repair an outbox: failed, requeue, rebase.\n"
                                         "See `settle outbox COMMAND --help`.");
  describe_command(command,
                   "  settle outbox failed\n  settle outbox requeue --all\n  settle outbox rebase --yes");
  command.require_subcommand();
  add_failed(command, shared);
  add_requeue(command, shared);
  add_rebase(command, shared);
}

}  // namespace settle::cli
