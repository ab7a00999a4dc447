// settle webhook: the journal of webhooks of a service.
#include "settle/webhook.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "base/encoding.hpp"
#include "base/time_text.hpp"
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/syntax.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t page_size = 1000;

struct list_arguments {
  webhook::journal_filter which;
  std::size_t limit = 100;
  std::int64_t after = 0;
};

json::object line_json(const webhook::journal_line& of) {
  json::object made{{"number", of.number},
                    {"source", safe_json_text(of.source)},
                    {"id", safe_json_text(of.id)},
                    {"type", safe_json_text(of.type)},
                    {"key", safe_json_text(of.key)},
                    {"status", safe_json_text(of.status)},
                    {"attempts", of.attempts},
                    {"received_at", to_rfc3339(of.received_at)},
                    {"next_at", nullptr},
                    {"last_error", safe_json_text(of.last_error)}};
  if (of.next_at) made["next_at"] = to_rfc3339(*of.next_at);
  return made;
}

int list(const context& shared, const list_arguments& asked) {
  const auto db = open_existing(shared.service_path(), file_kind::service);
  auto found = webhook::list(*db, asked.which, asked.limit + 1, asked.after);
  const bool more = found.size() > asked.limit;
  if (more) found.pop_back();
  if (shared.json) {
    json::array all;
    for (const auto& one : found) all.push_back(line_json(one));
    fmt::print("{}\n", json::serialize(all));
    return exit_ok;
  }
  if (found.empty()) {
    fmt::print("no webhook matches; --status ANY lists those that are over too\n");
    return exit_ok;
  }
  std::vector<std::vector<std::string>> rows{
      {"number", "received", "status", "source", "id", "type", "key", "attempts", "error"}};
  for (const auto& one : found)
    rows.push_back({std::to_string(one.number), to_rfc3339(one.received_at), for_terminal(one.status),
                    for_terminal(one.source), for_terminal(one.id), for_terminal(one.type),
                    for_terminal(one.key), grouped(one.attempts), for_terminal(one.last_error)});
  constexpr auto left = align::left, right = align::right;
  fmt::print("{}\n`settle webhook show SOURCE ID` tells everything about one.\n",
             table({right, left, left, left, left, left, left, right, left}, rows, 0));
  if (more) fmt::print("There are more: --after {} shows the next ones.\n", found.back().number);
  return exit_ok;
}

void add_list(command_syntax to, context& shared) {
  const auto command = to.add_subcommand(
      "list",
      "List webhooks in the order in which they came: those that are not over, unless --status says so.");
  const auto asked = std::make_shared<list_arguments>();
  command.add_option("--source", asked->which.source, "Only of this source").option_text("NAME");
  command
      .add_option("--status", asked->which.status,
                  "RECEIVED, PARKED, APPLIED, IGNORED, STALE, TOO_LATE, FAILED, or ANY.\n"
                  "Default: RECEIVED, PARKED and FAILED")
      .option_text("STATUS")
      .one_of({"RECEIVED", "PARKED", "APPLIED", "IGNORED", "STALE", "TOO_LATE", "FAILED", "ANY"});
  command.add_option("--limit", asked->limit, "At most so many. Default: 100")
      .option_text("N")
      .between(1, 1'000'000);
  command.add_option("--after", asked->after, "Only those with a higher number: the next page. Default: 0")
      .option_text("N")
      .not_negative();
  describe_command(command,
                   "  settle webhook list\n"
                   "  settle webhook list --source payments --status FAILED\n"
                   "  settle webhook list --json | jq -r '.[].last_error' | sort | uniq -c");
  command.callback([&shared, asked] { shared.run = [&shared, asked] { return list(shared, *asked); }; });
}

struct event_name {
  std::string source, id;
};

void add_name(command_syntax to, event_name& name, bool required) {
  to.add_option("SOURCE", name.source, "The source that it came to").option_text(" ").required(required);
  to.add_option("ID", name.id, "The provider's id of the event").option_text(" ").required(required);
}

json::object entry_json(const webhook::journal_entry& of) {
  json::object headers;
  for (const auto& [name, content] : of.what.headers) headers[safe_json_text(name)] = safe_json_text(content);
  json::object made{{"source", safe_json_text(of.what.source)},
                    {"id", safe_json_text(of.what.id)},
                    {"type", safe_json_text(of.what.type)},
                    {"key", safe_json_text(of.what.key)},
                    {"status", safe_json_text(of.status)},
                    {"attempts", of.attempts},
                    {"last_error", safe_json_text(of.last_error)},
                    {"received_at", to_rfc3339(of.what.received_at)},
                    {"time", nullptr},
                    {"headers", std::move(headers)}};
  if (of.what.time) made["time"] = to_rfc3339(*of.what.time);
  if (is_printable(of.what.body))
    made["body"] = of.what.body;
  else
    made["body_base64"] = to_base64(of.what.body);
  return made;
}

void print_entry(const webhook::journal_entry& of) {
  const auto line = [](std::string_view name, const std::string& content) {
    if (!content.empty()) fmt::print("  {:<9} {}\n", name, content);
  };
  fmt::print("{} {}, {}\n", for_terminal(of.what.source), for_terminal(of.what.id), for_terminal(of.status));
  line("type", for_terminal(of.what.type));
  line("key", for_terminal(of.what.key));
  line("received", to_rfc3339(of.what.received_at));
  if (of.what.time) line("sent", to_rfc3339(*of.what.time));
  line("attempts", grouped(of.attempts));
  line("error", for_terminal(of.last_error));
  for (const auto& [name, content] : of.what.headers) line("header", for_terminal(name + ": " + content));
  fmt::print("\n{}\n", is_printable(of.what.body)
                           ? of.what.body
                           : counted(static_cast<std::int64_t>(of.what.body.size()), "byte") +
                                 ", not printable; --json has them");
}

int show(const context& shared, const event_name& which) {
  const auto db = open_existing(shared.service_path(), file_kind::service);
  const auto found = webhook::find(*db, which.source, which.id);
  if (!found)
    throw failure(errc::invalid_argument,
                  fmt::format("there is no webhook '{}' of the source '{}' in {}; see `settle webhook list`",
                              which.id, which.source, db->name()));
  if (shared.json)
    fmt::print("{}\n", json::serialize(entry_json(*found)));
  else
    print_entry(*found);
  return exit_ok;
}

void add_show(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("show", "Show one webhook: what became of it, its headers and its body.");
  const auto which = std::make_shared<event_name>();
  add_name(command, *which, true);
  describe_command(command,
                   "  settle webhook show payments evt_1\n"
                   "  settle webhook show payments evt_1 --json | jq -r .body");
  command.callback([&shared, which] { shared.run = [&shared, which] { return show(shared, *which); }; });
}

struct retry_arguments {
  event_name which;
  bool all = false;
};

// One by one: each is a decision of its own, and workers begin with the first meanwhile.
std::int64_t retry_all_failed(database& db, const std::string& source) {
  std::int64_t count = 0, after = 0;
  while (true) {
    const auto page = webhook::list(db, {.source = source, .status = "FAILED"}, page_size, after);
    if (page.empty()) return count;
    for (const auto& one : page) {
      count += webhook::retry(db, one.source, one.id) ? 1 : 0;
      after = one.number;
    }
  }
}

int retry(const context& shared, const retry_arguments& asked) {
  if (asked.all ? !asked.which.id.empty() : asked.which.id.empty())
    throw failure(errc::invalid_argument,
                  "retry takes SOURCE and ID of a webhook, or --all and perhaps SOURCE");
  const auto db = open_existing(shared.service_path(), file_kind::service);
  const auto count =
      asked.all ? retry_all_failed(*db, asked.which.source)
                : static_cast<std::int64_t>(webhook::retry(*db, asked.which.source, asked.which.id) ? 1 : 0);
  if (!asked.all && count == 0)
    throw failure(
        errc::invalid_argument,
        fmt::format("no webhook '{}' of the source '{}' is FAILED or TOO_LATE; see `settle webhook list`",
                    asked.which.id, asked.which.source));
  if (shared.json)
    fmt::print("{}\n", json::serialize(json::object{{"retried", count}}));
  else
    fmt::print("{} will be tried again, with all {} attempts\n", counted(count, "webhook"),
               count == 1 ? "its" : "their");
  return exit_ok;
}

void add_retry(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("retry",
                        "Let workers try FAILED webhooks again, or run one that came TOO_LATE\n"
                        "(by its id only: make sure that it was not applied before).");
  const auto asked = std::make_shared<retry_arguments>();
  add_name(command, asked->which, false);
  command.add_flag("--all", asked->all, "Every FAILED one, of SOURCE if that is given").option_text(" ");
  describe_command(command, "  settle webhook retry payments evt_1\n  settle webhook retry payments --all");
  command.callback([&shared, asked] { shared.run = [&shared, asked] { return retry(shared, *asked); }; });
}

}  // namespace

void add_webhook(command_syntax to, context& shared) {
  const auto command = to.add_subcommand("webhook",
                                         "Webhooks that a service has received: list, show, retry.\n"
                                         "See `settle webhook COMMAND --help`.");
  describe_command(command, "  settle webhook list\n  settle webhook retry payments --all");
  command.require_subcommand();
  add_list(command, shared);
  add_show(command, shared);
  add_retry(command, shared);
}

}  // namespace settle::cli
