// settle keys: claims on idempotency keys of which nobody knows whether their work was done.
#include <fmt/format.h>

#include <algorithm>
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
#include "settle/claims.hpp"

namespace settle::cli {
namespace {

constexpr std::int64_t looked_through_max = 1'000'000;

// An empty list would say that all is well.
std::unique_ptr<database> open_keys(const context& shared) {
  const auto* service = shared.chosen_service();
  if (service != nullptr && !service->keys_redis.empty())
    throw failure(errc::invalid_argument,
                  "the keys of this service are in Redis (keys.redis), and those are not listed");
  return open_existing(shared.service_path(), file_kind::service);
}

// As far as the claimer has given it.
std::string about_text(const unknown_claim& of) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& content) {
    if (!content.empty())
      text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name, for_terminal(content));
  };
  const auto request = of.method + (of.method.empty() || of.target.empty() ? "" : " ") + of.target;
  add("", request);
  add("caller ", of.caller);
  add("key ", of.key);
  add("", of.label);
  return text.empty() ? text : "  " + text + "\n";
}

void print_unknown(const std::vector<unknown_claim>& found, bool json, timestamp now) {
  if (json) {
    boost::json::array all;
    for (const auto& one : found)
      all.push_back({{"claim", one.token.run.text()},
                     {"service", safe_json_text(one.service)},
                     {"caller", safe_json_text(one.caller)},
                     {"key", safe_json_text(one.key)},
                     {"method", safe_json_text(one.method)},
                     {"target", safe_json_text(one.target)},
                     {"label", safe_json_text(one.label)},
                     {"claimed_at", to_rfc3339(one.claimed_at)},
                     {"lease_until", to_rfc3339(one.lease_until)},
                     {"epoch", one.token.epoch}});
    fmt::print("{}\n", boost::json::serialize(all));
    return;
  }
  if (found.empty()) fmt::print("every claim is held, released or completed\n");
  for (const auto& one : found)
    fmt::print("{}  {}  claimed {}, silent since {} ago\n{}", one.token.run.text(), for_terminal(one.service),
               to_rfc3339(one.claimed_at), age(now - one.lease_until), about_text(one));
}

void add_unknown(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("unknown",
                        "List claims whose owner was not heard of again, oldest first.\n"
                        "Nobody knows whether their work was done, so their keys are not free.\n"
                        "Caller, key, method, target and label are shown if the claimer gave them.");
  const auto limit = std::make_shared<std::int64_t>(100);
  command.add_option("--limit", *limit, "At most so many. Default: 100")
      .option_text("N")
      .between(1, 1'000'000);
  describe_command(command, "  settle keys unknown\n  settle keys unknown --json | jq -r '.[].claim'");
  command.callback([&shared, limit] {
    shared.run = [&shared, limit] {
      const auto db = open_keys(shared);
      print_unknown(unknown_claims(*db, *limit), shared.json, db->env().now());
      return exit_ok;
    };
  });
}

struct decision {
  std::string claim;
  bool release = false;
  int status = 0;
  std::string body;
};

unknown_claim find_claim(database& db, const std::string& text) {
  const auto run = uuid::parse(text);
  if (!run)
    throw failure(errc::invalid_argument, fmt::format("'{}' is no claim; see `settle keys unknown`", text));
  const auto all = unknown_claims(db, looked_through_max);
  const auto found = std::ranges::find_if(all, [&](const auto& one) { return one.token.run == *run; });
  if (found == all.end())
    throw failure(errc::invalid_argument,
                  fmt::format("no claim {} is of unknown outcome; see `settle keys unknown`", text));
  return *found;
}

int resolve(context& shared, const decision& how) {
  if (how.release == (how.status != 0))
    throw failure(
        errc::invalid_argument,
        "decide with either --release (the work was not done) or --status (it was, and this is its answer)");
  const auto db = open_keys(shared);
  const auto which = find_claim(*db, how.claim);
  const auto what =
      how.release ? std::nullopt : std::optional(answer{.status = how.status, .body = how.body});
  if (resolve_claim(*db, which, what) == claim_ended::lost)
    throw failure(errc::invalid_argument,
                  fmt::format("claim {} was renewed, completed or taken over meanwhile; nothing was changed",
                              how.claim));
  shared.note_done(fmt::format("claim {} was {}", how.claim, how.release ? "released" : "completed"));
  if (shared.json)
    fmt::print("{}\n", boost::json::serialize(boost::json::object{{"resolved", how.claim}}));
  else
    fmt::print("{}; {}\n", how.claim,
               how.release ? "released: the key is free, and the next request with it runs"
                           : "completed: requests with its key get this answer");
  return exit_ok;
}

void add_resolve(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("resolve",
                        "Decide a claim of unknown outcome, after you have found out what happened.\n"
                        "Its owner, should it come back, is told that the claim is lost.");
  const auto how = std::make_shared<decision>();
  command.add_option("CLAIM", how->claim, "The claim, as `settle keys unknown` names it")
      .option_text(" ")
      .required();
  command.add_flag("--release", how->release, "The work was not done: the key is free again")
      .option_text(" ");
  command.add_option("--status", how->status, "The work was done, with this status of HTTP")
      .option_text("N")
      .between(100, 599);
  command.add_option("--body", how->body, "And this body. Default: empty").option_text("TEXT");
  describe_command(
      command,
      "  settle keys resolve 01890a5d-ac96-774b-bcce-b302099a8057 --release\n"
      "  settle keys resolve 01890a5d-ac96-774b-bcce-b302099a8057 --status 201 --body '{\"id\":7}'");
  command.callback([&shared, how] { shared.run = [&shared, how] { return resolve(shared, *how); }; });
}

}  // namespace

void add_keys(command_syntax to, context& shared) {
  const auto command = to.add_subcommand("keys",
                                         "Idempotency keys whose outcome nobody knows: unknown, resolve.\n"
                                         "See `settle keys COMMAND --help`.");
  describe_command(command, "  settle keys unknown");
  command.require_subcommand();
  add_unknown(command, shared);
  add_resolve(command, shared);
}

}  // namespace settle::cli
