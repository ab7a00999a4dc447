// settle group: consumer groups, for which a broker keeps messages until they have read them.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "base/time_text.hpp"
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/dlq_filter.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/syntax.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "compose/broker_groups.hpp"
#include "settle/driver/broker.hpp"
#include "settle/driver/broker_inspection.hpp"
#include "settle/error.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;
using compose::group_change;
using compose::group_choice;
using compose::group_extent;

json::object extent_json(const group_extent& of) {
  json::object made{{"group", safe_json_text(of.group)}, {"topic", safe_json_text(of.topic)},
                    {"members_alive", of.members_alive}, {"unread", of.unread},
                    {"oldest_unread", nullptr},          {"newest_unread", nullptr}};
  if (of.oldest) made["oldest_unread"] = to_rfc3339(*of.oldest);
  if (of.newest) made["newest_unread"] = to_rfc3339(*of.newest);
  return made;
}

json::object group_json(const inspected_group& of) {
  return extent_json({of.group, of.topic, of.members_alive, of.lag.value_or(0), of.oldest, of.newest});
}

int list(const context& shared) {
  const auto broker = open_broker_view(shared.broker_path(), shared.broker_options());
  const auto groups = broker->inspection().groups({.with_times = true});
  if (shared.json) {
    json::array all;
    for (const auto& one : groups) all.push_back(group_json(one));
    fmt::print("{}\n", json::serialize(all));
    return exit_ok;
  }
  if (groups.empty()) {
    fmt::print("no consumer groups yet\n");
    return exit_ok;
  }
  const auto now = broker->env().now();
  std::vector<std::vector<std::string>> rows{{"group", "topic", "unread", "oldest", "members alive"}};
  for (const auto& one : groups)
    rows.push_back({for_terminal(one.group), for_terminal(one.topic), grouped(one.lag.value_or(0)),
                    one.oldest ? age(now - *one.oldest) + " ago" : "", grouped(one.members_alive)});
  fmt::print("{}", table({align::left, align::left, align::right, align::left, align::right}, rows, 0));
  return exit_ok;
}

void add_list(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("list", "List the groups: what each has not read, and whether anybody reads.");
  describe_command(command,
                   "  settle group list\n  settle group list --json | jq '.[] | select(.unread > 0)'");
  command.callback([&shared] { shared.run = [&shared] { return list(shared); }; });
}

struct change_arguments {
  group_choice which;
  std::string to;
  bool confirmed = false;
};

void require_confirmed(const change_arguments& asked) {
  if (asked.confirmed) return;
  throw failure(errc::invalid_argument,
                "nothing was changed; if that is what you want, repeat it with --yes");
}

// What is unread before and not afterwards will never be read by this group.
std::string lost_text(const group_change& of, timestamp now) {
  const auto lost = of.before.unread - of.after.unread;
  if (lost <= 0) return "loses nothing";
  auto text = fmt::format("never reads {}", counted(lost, "message"));
  if (of.before.oldest) text += fmt::format(", the oldest of {} ago", age(now - *of.before.oldest));
  return text;
}

void tell_changes(const std::vector<group_change>& changes, bool removes, bool done, const context& shared,
                  timestamp now) {
  if (shared.json) {
    json::array topics;
    for (const auto& one : changes)
      topics.push_back({{"before", extent_json(one.before)}, {"after", extent_json(one.after)}});
    fmt::print("{}\n", json::serialize(json::object{{"done", done}, {"topics", std::move(topics)}}));
    return;
  }
  for (const auto& one : changes) {
    fmt::print("{} on {}: {}", for_terminal(one.before.group), for_terminal(one.before.topic),
               lost_text(one, now));
    if (!removes) fmt::print("; {} to read from there", counted(one.after.unread, "message"));
    fmt::print("\n");
  }
}

// A group that is gone has nothing to read, whatever is left in the log.
std::vector<group_change> without_rest(std::vector<group_change> changes) {
  for (auto& one : changes) one.after = {.group = one.before.group, .topic = one.before.topic};
  return changes;
}

// A server is asked what waits for the group, and then to remove it.
int remove_from_server(context& shared, const change_arguments& asked) {
  const auto broker = compose::open_broker(shared.broker_path(), shared.broker_options());
  std::vector<group_change> changes;
  for (const auto& one : broker->inspection()->groups()) {
    if (one.group != asked.which.group || (!asked.which.topic.empty() && one.topic != asked.which.topic))
      continue;
    if (one.members_alive > 0)
      throw failure(errc::invalid_argument,
                    fmt::format("group {} has members on topic {} that are alive; stop them first. See "
                                "`settle group list`",
                                one.group, one.topic));
    changes.push_back({{one.group, one.topic, 0, one.lag.value_or(0), std::nullopt, std::nullopt},
                       {.group = one.group, .topic = one.topic}});
  }
  if (changes.empty())
    throw failure(errc::invalid_argument,
                  fmt::format("there is no group {} on {}. See `settle group list`", asked.which.group,
                              asked.which.topic.empty() ? "any topic" : "topic " + asked.which.topic));
  if (asked.confirmed) {
    for (const auto& one : changes) broker->remove_group(one.before.group, one.before.topic);
    shared.note_done(fmt::format("group {} was removed", asked.which.group));
  }
  tell_changes(changes, true, asked.confirmed, shared, environment{}.now());
  require_confirmed(asked);
  return exit_ok;
}

int change(context& shared, change_arguments asked, bool removes) {
  if (removes && compose::is_broker_server(shared.broker_path())) return remove_from_server(shared, asked);
  const auto broker = open_existing(shared.broker_path(), file_kind::broker);
  const auto now = broker->env().now();
  const auto to = asked.to == "start" ? timestamp::min()
                  : asked.to == "end" ? timestamp::max()
                  : removes           ? timestamp::min()
                                      : time_from("--to", asked.to, now);
  asked.which.only_look = !asked.confirmed;
  std::vector<group_change> changes;
  try {
    changes = removes ? without_rest(compose::remove_group(*broker, asked.which))
                      : compose::reset_group(*broker, asked.which, to);
  } catch (const error& e) {
    if (e.code() != errc::invalid_argument) throw;
    throw failure(e.code(), fmt::format("{}. See `settle group list`", e.what()));
  }
  if (asked.confirmed)
    shared.note_done(fmt::format("group {} was {}", asked.which.group, removes ? "removed" : "reset"));
  tell_changes(changes, removes, asked.confirmed, shared, now);
  require_confirmed(asked);
  return exit_ok;
}

void add_change_options(command_syntax to, change_arguments& into) {
  to.add_option("GROUP", into.which.group, "Its name: that of the consumer").option_text(" ").required();
  to.add_option("--topic", into.which.topic, "On this topic only. Default: on all of its topics")
      .option_text("NAME");
  to.add_flag("--yes", into.confirmed, "Do it; without this it only tells what would be lost, exit code 2")
      .option_text(" ");
}

void add_remove(command_syntax to, context& shared) {
  const auto command = to.add_subcommand(
      "remove",
      "Remove a group that was retired, so that no messages are kept for it any more.\n"
      "Refused while one of its members is alive. A consumer that subscribes under its name\n"
      "again is a new group, and begins with the oldest message there is; on RabbitMQ with\n"
      "the next one that is published.");
  const auto asked = std::make_shared<change_arguments>();
  add_change_options(command, *asked);
  describe_command(command,
                   "  settle group remove old-warehouse           what would be lost\n"
                   "  settle group remove old-warehouse --yes");
  command.callback(
      [&shared, asked] { shared.run = [&shared, asked] { return change(shared, *asked, true); }; });
}

void add_reset(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("reset",
                        "Set a group of the embedded broker back or ahead. Refused while one of its\n"
                        "members is alive.\n"
                        "What it reads again is skipped as far as its consumer remembers it; what may have\n"
                        "been applied before that becomes a dead letter (beyond_dedup_horizon).");
  const auto asked = std::make_shared<change_arguments>();
  add_change_options(command, *asked);
  command
      .add_option("--to", asked->to,
                  "Where it goes on: start (the oldest message there is), end (the next one that comes), or\n"
                  "what the broker has taken since 2026-01-31T12:00:00Z, 2026-01-31, or 90s, 15m, 2h, 3d ago")
      .option_text("WHERE")
      .required();
  describe_command(command,
                   "  settle group reset warehouse --to end       what would be skipped\n"
                   "  settle group reset warehouse --to 2h --topic orders --yes");
  command.callback(
      [&shared, asked] { shared.run = [&shared, asked] { return change(shared, *asked, false); }; });
}

}  // namespace

void add_group(command_syntax to, context& shared) {
  const auto command = to.add_subcommand("group",
                                         "Consumer groups at the broker: list, create, remove, reset.\n"
                                         "See `settle group COMMAND --help`.");
  describe_command(command, "  settle group list\n  settle group create warehouse --topic orders");
  command.require_subcommand();
  add_list(command, shared);
  add_group_create(command, shared);
  add_remove(command, shared);
  add_reset(command, shared);
}

}  // namespace settle::cli
