// settle dlq: messages that consumers have given up.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <functional>
#include <memory>

#include "base/time_text.hpp"
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/dlq_filter.hpp"
#include "cli/dlq_text.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/hints.hpp"
#include "cli/syntax.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "settle/dead_letter.hpp"

namespace settle::cli {

namespace {

namespace json = boost::json;

// They are read with their payloads, so few at a time.
constexpr std::size_t page_size = 100;

struct list_arguments {
  letter_options which;
  std::int64_t limit = 100;
  std::int64_t after = 0;
};

// True if there are more than asked for.
bool for_each_letter(database& db, const list_arguments& asked,
                     const std::function<void(const dead_letter&)>& use) {
  const auto which = asked.which.filter(db.env().now());
  auto after = asked.after;
  for (std::int64_t left = asked.limit + 1; left > 0;) {
    const auto page = dead_letters(db, which, std::min(page_size, static_cast<std::size_t>(left)), after);
    for (const auto& one : page) {
      if (--left == 0) return true;
      use(one);
      after = one.id;
    }
    if (page.empty()) return false;
  }
  return false;
}

int list(const context& shared, const list_arguments& asked) {
  const auto db = open_existing(shared.service_path(), file_kind::service);
  json::array all;
  letter_table lines;
  std::int64_t last = 0;
  const bool more = for_each_letter(*db, asked, [&](const dead_letter& one) {
    last = one.id;
    if (shared.json)
      all.push_back(letter_summary_json(one));
    else
      lines.add(one);
  });
  if (shared.json) {
    fmt::print("{}\n", json::serialize(all));
  } else if (last == 0) {
    fmt::print("{}\n",
               with_given("no dead letter matches; `settle dlq stats` counts all of them", shared.given));
  } else {
    fmt::print("{}\n{}\n", lines.text(),
               with_given("`settle dlq show ID` tells everything about one.", shared.given));
    if (more) fmt::print("There are more: --after {} shows the next ones.\n", last);
  }
  return exit_ok;
}

void add_list(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("list",
                        "List dead letters, oldest first: those that wait (NEW), unless --status "
                        "says otherwise.");
  const auto asked = std::make_shared<list_arguments>();
  add_letter_options(command, asked->which,
                     "NEW, REPLAYING, REPLAYED, DISCARD_REQUESTED, DISCARDED, or ANY.\n"
                     "Default: NEW, those that wait for somebody");
  command
      .add_option("--limit", asked->limit,
                  "At most so many. Default: 100, so that a flood does not fill the terminal")
      .option_text("N")
      .between(1, 1'000'000);
  command.add_option("--after", asked->after, "Only those with a higher id: the next page. Default: 0")
      .option_text("ID")
      .not_negative();
  describe_command(command,
                   "  settle dlq list\n"
                   "  settle dlq list --consumer warehouse --since 2h\n"
                   "  settle dlq list --status ANY --event 01890a5d-ac96-774b-bcce-b302099a8057\n"
                   "  settle dlq list --json | jq -r '.[].error' | sort | uniq -c");
  command.callback([&shared, asked] { shared.run = [&shared, asked] { return list(shared, *asked); }; });
}

int show(const context& shared, std::int64_t id) {
  const auto db = open_existing(shared.service_path(), file_kind::service);
  const auto found = dead_letters(*db, {.ids = {id}});
  if (found.empty())
    throw failure(errc::invalid_argument,
                  fmt::format("there is no dead letter {} in {}; see `settle dlq list`", id, db->name()));
  fmt::print("{}", shared.json ? letter_json(found[0]) : letter_text(found[0], db->env().now()));
  return exit_ok;
}

void add_show(command_syntax to, context& shared) {
  const auto command = to.add_subcommand(
      "show", "Show one dead letter: why it was given up, every attempt, its headers and its payload.");
  const auto id = std::make_shared<std::int64_t>(0);
  command.add_option("ID", *id, "The letter's id, a number, as `settle dlq list` shows it")
      .option_text(" ")
      .required();
  describe_command(command, "  settle dlq show 7\n  settle dlq show 7 --json | jq .message.data");
  command.callback([&shared, id] { shared.run = [&shared, id] { return show(shared, *id); }; });
}

int stats(const context& shared) {
  const auto db = open_existing(shared.service_path(), file_kind::service);
  const auto groups = dead_letter_groups(*db);
  if (shared.json) {
    json::array all;
    for (const auto& one : groups)
      all.push_back({{"consumer", safe_json_text(one.consumer)},
                     {"topic", safe_json_text(one.topic)},
                     {"type", safe_json_text(one.type)},
                     {"reason", std::string(to_string(one.reason))},
                     {"status", std::string(to_string(one.status))},
                     {"count", one.count},
                     {"oldest", to_rfc3339(one.oldest)},
                     {"newest", to_rfc3339(one.newest)}});
    fmt::print("{}\n", json::serialize(all));
    return exit_ok;
  }
  if (groups.empty()) {
    fmt::print("there are no dead letters\n");
    return exit_ok;
  }
  const auto now = db->env().now();
  std::vector<std::vector<std::string>> rows{
      {"letters", "status", "consumer", "topic", "type", "reason", "oldest", "newest"}};
  for (const auto& one : groups)
    rows.push_back({grouped(one.count), std::string(to_string(one.status)), for_terminal(one.consumer),
                    for_terminal(one.topic), for_terminal(one.type), std::string(to_string(one.reason)),
                    age(now - one.oldest) + " ago", age(now - one.newest) + " ago"});
  constexpr auto left = align::left;
  fmt::print("{}", table({align::right, left, left, left, left, left, left, left}, rows, 0));
  return exit_ok;
}

void add_stats(command_syntax to, context& shared) {
  const auto command = to.add_subcommand(
      "stats", "Count dead letters by status, consumer, topic, type and reason; the largest group first.");
  describe_command(command, "  settle dlq stats\n  settle dlq stats --json");
  command.callback([&shared] { shared.run = [&shared] { return stats(shared); }; });
}

}  // namespace

void add_dlq(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("dlq",
                        "Dead letters, messages that a consumer has given up: list, show, stats, "
                        "replay, discard, import.\n"
                        "They are in the database of that consumer. See `settle dlq COMMAND "
                        "--help`.");
  describe_command(command,
                   "  settle dlq stats\n  settle dlq list\n  settle dlq show 7\n  settle dlq replay --all");
  command.require_subcommand();
  add_list(command, shared);
  add_show(command, shared);
  add_stats(command, shared);
  add_dlq_replay(command, shared);
  add_dlq_discard(command, shared);
  add_dlq_import(command, shared);
}

}  // namespace settle::cli
