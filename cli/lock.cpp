// settle lock: named locks in a service's database, who has them, and a way to take one away.
#include "settle/lock.hpp"

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
#include "cli/table.hpp"
#include "cli/text.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

std::string_view state_of(const lock_record& of) {
  if (!of.until) return "released";
  return of.expired ? "expired" : "held";
}

json::object lock_json(const lock_record& of) {
  json::object made{{"name", safe_json_text(of.name)},
                    {"state", std::string(state_of(of))},
                    {"owner", of.token.owner.text()},
                    {"epoch", of.token.epoch},
                    {"until", nullptr}};
  if (of.until) made["until"] = to_rfc3339(*of.until);
  return made;
}

std::string until_text(const lock_record& of, timestamp now) {
  if (!of.until) return "-";
  return of.expired ? age(now - *of.until) + " ago" : "in " + age(*of.until - now);
}

struct list_arguments {
  bool all = false;
  std::size_t limit = 100;
  std::string after;
};

int list(const context& shared, const list_arguments& asked) {
  const auto db = open_existing(shared.service_path(), file_kind::service);
  auto found = list_locks(*db, asked.all, asked.limit + 1, asked.after);
  const bool more = found.size() > asked.limit;
  if (more) found.pop_back();
  if (shared.json) {
    json::array all;
    for (const auto& one : found) all.push_back(lock_json(one));
    fmt::print("{}\n", json::serialize(all));
    return exit_ok;
  }
  if (found.empty()) {
    fmt::print("{}\n", asked.all ? "there are no locks" : "nobody has a lock; --all lists released ones too");
    return exit_ok;
  }
  std::vector<std::vector<std::string>> rows{{"name", "state", "ends", "epoch", "owner"}};
  for (const auto& one : found)
    rows.push_back({for_terminal(one.name), std::string(state_of(one)), until_text(one, db->env().now()),
                    std::to_string(one.token.epoch), one.token.owner.text()});
  constexpr auto left = align::left;
  fmt::print("{}", table({left, left, left, align::right, left}, rows, 0));
  if (more)
    fmt::print("There are more: --after '{}' shows the next ones.\n", for_terminal(found.back().name));
  return exit_ok;
}

void add_list(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("list",
                        "List locks that somebody has, by name. One that has expired may be taken "
                        "over by anybody.\nLocks in Redis are not listed.");
  const auto asked = std::make_shared<list_arguments>();
  command.add_flag("--all", asked->all, "Released ones too").option_text(" ");
  command.add_option("--limit", asked->limit, "At most so many. Default: 100")
      .option_text("N")
      .between(1, 1'000'000);
  command.add_option("--after", asked->after, "Only names behind this one: the next page")
      .option_text("NAME");
  describe_command(command, "  settle lock list\n  settle lock list --all --json | jq -r '.[].name'");
  command.callback([&shared, asked] { shared.run = [&shared, asked] { return list(shared, *asked); }; });
}

lock_record find_existing(database& db, const std::string& name) {
  const auto found = find_lock(db, name);
  if (!found)
    throw failure(
        errc::invalid_argument,
        fmt::format("there was never a lock '{}' in {}; see `settle lock list --all`", name, db.name()));
  return *found;
}

int show(const context& shared, const std::string& name) {
  const auto db = open_existing(shared.service_path(), file_kind::service);
  const auto found = find_existing(*db, name);
  if (shared.json) {
    fmt::print("{}\n", json::serialize(lock_json(found)));
    return exit_ok;
  }
  fmt::print("{}  {}\n  {:<6} {}\n  {:<6} {}\n", for_terminal(found.name), state_of(found),
             found.until ? "owner" : "last", found.token.owner.text(), "epoch", found.token.epoch);
  if (found.until)
    fmt::print("  {:<6} {} ({})\n", "until", to_rfc3339(*found.until), until_text(found, db->env().now()));
  return exit_ok;
}

void add_show(command_syntax to, context& shared) {
  const auto command = to.add_subcommand("show", "Show who has a lock, in which epoch and until when.");
  const auto name = std::make_shared<std::string>();
  command.add_option("NAME", *name, "The lock").option_text(" ").required();
  describe_command(command, "  settle lock show nightly-report");
  command.callback([&shared, name] { shared.run = [&shared, name] { return show(shared, *name); }; });
}

struct release_arguments {
  std::string name;
  std::int64_t epoch = 0;
};

int release(const context& shared, const release_arguments& asked) {
  const auto db = open_existing(shared.service_path(), file_kind::service);
  const auto found = find_existing(*db, asked.name);
  if (!found.until)
    throw failure(errc::invalid_argument, fmt::format("nobody has the lock '{}'", asked.name));
  if (asked.epoch != found.token.epoch)
    throw failure(
        errc::invalid_argument,
        fmt::format(
            "the lock '{}' is {} in epoch {}, by {}. Its owner may be at work: releasing it fences that "
            "one off, and lets others begin. If that is what you want, repeat it with --epoch {}",
            asked.name, state_of(found), found.token.epoch, found.token.owner.text(), found.token.epoch));
  if (!take_lock_away(*db, asked.name, found.token))
    throw failure(
        errc::invalid_argument,
        fmt::format("the lock '{}' was released or taken over meanwhile; nothing was changed", asked.name));
  if (shared.json)
    fmt::print("{}\n", json::serialize(json::object{{"released", safe_json_text(asked.name)}}));
  else
    fmt::print("{} is free; its former owner cannot write under it any more\n", for_terminal(asked.name));
  return exit_ok;
}

void add_release(command_syntax to, context& shared) {
  const auto command = to.add_subcommand(
      "release",
      "Take a lock away from its owner, which cannot write under its fence from then on.\n"
      "It names the epoch, so that nobody else's is taken; without --epoch the owner is shown, exit code 2.");
  const auto asked = std::make_shared<release_arguments>();
  command.add_option("NAME", asked->name, "The lock").option_text(" ").required();
  command.add_option("--epoch", asked->epoch, "Its present epoch, as `settle lock show` tells it")
      .option_text("N")
      .positive();
  describe_command(command, "  settle lock release nightly-report --epoch 7");
  command.callback([&shared, asked] { shared.run = [&shared, asked] { return release(shared, *asked); }; });
}

}  // namespace

void add_lock(command_syntax to, context& shared) {
  const auto command = to.add_subcommand("lock",
                                         "Named locks in a service's database: list, show, release.\n"
                                         "See `settle lock COMMAND --help`.");
  describe_command(command, "  settle lock list\n  settle lock show nightly-report");
  command.require_subcommand();
  add_list(command, shared);
  add_show(command, shared);
  add_release(command, shared);
}

}  // namespace settle::cli
