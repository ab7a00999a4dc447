// settle saga: flows over several steps, where they stand, and what people decide about them.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/hints.hpp"
#include "cli/saga_find.hpp"
#include "cli/saga_text.hpp"
#include "cli/syntax.hpp"
#include "inspect/sagas.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

struct list_arguments {
  inspect::saga_filter which;
  std::string status;
  bool held = false;
  std::size_t limit = 100;
  std::int64_t after = 0;
};

inspect::saga_filter filter_of(const list_arguments& asked) {
  auto which = asked.which;
  if (asked.held && !asked.status.empty())
    throw failure(errc::invalid_argument, "give either --held or --status");
  if (asked.held)
    which.statuses = {"HELD"};
  else if (asked.status == "ANY")
    which.statuses = {"RUNNING", "COMPENSATING", "HELD", "COMPLETED", "COMPENSATED", "FAILED"};
  else if (!asked.status.empty())
    which.statuses = {asked.status};
  return which;
}

int list(const context& shared, const list_arguments& asked) {
  const auto which = filter_of(asked);
  const auto db = open_existing(shared.service_path(), file_kind::service);
  auto found = inspect::list_sagas(*db, which, asked.limit + 1, asked.after);
  const bool more = found.size() > asked.limit;
  if (more) found.pop_back();
  if (shared.json) {
    json::array all;
    for (const auto& one : found) all.push_back(line_json(one));
    fmt::print("{}\n", json::serialize(all));
    return exit_ok;
  }
  if (found.empty()) {
    fmt::print("{}\n", which.statuses.empty()
                           ? "no saga is under way or held here; --status ANY lists those that have ended too"
                           : "no saga matches; --status ANY lists them all");
    return exit_ok;
  }
  fmt::print("{}\n{}\n", sagas_text(found, db->env().now()),
             with_given("`settle saga show ID` tells everything about one.", shared.given));
  if (more) fmt::print("There are more: --after {} shows the next ones.\n", found.back().no);
  return exit_ok;
}

void add_list(command_syntax to, context& shared) {
  const auto command = to.add_subcommand(
      "list", "List sagas, the newest first: those that have not ended, unless --status says otherwise.");
  const auto asked = std::make_shared<list_arguments>();
  command.add_option("--type", asked->which.type, "Only of this type").option_text("NAME");
  command.add_option("--host", asked->which.host, "Only of this host").option_text("NAME");
  command.add_option("--entity", asked->which.entity, "Only of this entity: the order, the return")
      .option_text("ID");
  command
      .add_option("--status", asked->status,
                  "RUNNING, COMPENSATING, HELD, COMPLETED, COMPENSATED, FAILED, or ANY.\n"
                  "Default: the first three, those that have not ended")
      .option_text("STATUS")
      .one_of({"RUNNING", "COMPENSATING", "HELD", "COMPLETED", "COMPENSATED", "FAILED", "ANY"});
  command.add_flag("--held", asked->held, "Only those that wait for a person; the same as --status HELD")
      .option_text(" ");
  command.add_option("--limit", asked->limit, "At most so many. Default: 100")
      .option_text("N")
      .between(1, 1'000'000);
  command.add_option("--after", asked->after, "Only those listed behind this number: the next page")
      .option_text("N")
      .not_negative();
  describe_command(
      command,
      "  settle saga list\n"
      "  settle saga list --held\n"
      "  settle saga list --type return_processing --status ANY --entity r-1\n"
      "  settle saga list --json | jq -r '.[] | select(.processes == 0) | .type' | sort | uniq -c");
  command.callback([&shared, asked] { shared.run = [&shared, asked] { return list(shared, *asked); }; });
}

int show(const context& shared, const std::string& which) {
  const auto db = open_existing(shared.service_path(), file_kind::service);
  const auto found = find_saga(*db, which);
  if (shared.json)
    fmt::print("{}\n", json::serialize(saga_json(found)));
  else
    fmt::print("{}", with_given(saga_text(found, db->env().now()), shared.given));
  return exit_ok;
}

void add_show(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("show",
                        "Show one saga: its steps, waits and undos with their times and results, what it\n"
                        "waits for, and if it is HELD why, and what you can do.");
  const auto which = std::make_shared<std::string>();
  command.add_option("ID", *which, "The saga's id, as `settle saga list` shows it, or its entity")
      .option_text(" ")
      .required();
  describe_command(command,
                   "  settle saga show r-1\n"
                   "  settle saga show 01890a5d-ac96-574b-bcce-b302099a8057 --json | jq '.timeline[].name'");
  command.callback([&shared, which] { shared.run = [&shared, which] { return show(shared, *which); }; });
}

}  // namespace

void add_saga(command_syntax to, context& shared) {
  const auto command = to.add_subcommand(
      "saga",
      "Sagas, flows that complete or are undone: list, show, retry, skip, mark-done, abort, signal.\n"
      "They are in the database of the service that runs them. See `settle saga COMMAND --help`.");
  describe_command(command,
                   "  settle saga list --held\n"
                   "  settle saga show r-1\n"
                   "  settle saga retry r-1 --reason 'the bank is back'");
  command.require_subcommand();
  add_list(command, shared);
  add_show(command, shared);
  add_saga_orders(command, shared);
  add_saga_signal(command, shared);
}

}  // namespace settle::cli
