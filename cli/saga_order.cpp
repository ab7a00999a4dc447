// settle saga retry, skip, mark-done, abort: what a person decides about a saga. Its owner does it; this
// waits a moment for that, and says what came of it.
#include <fmt/format.h>

#include <algorithm>
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
#include "cli/text.hpp"
#include "settle/saga.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

constexpr duration look_every = std::chrono::milliseconds(50);
constexpr duration soon = std::chrono::seconds(1);

struct order_arguments {
  saga_order what{};
  std::string which;
  std::string reason, who, result;
  double wait_seconds = 5;
};

// An order that is not possible is refused here, where somebody reads it; its owner could only log it.
void require_possible(const inspect::saga_state& of, saga_order what) {
  const auto& line = of.line;
  const auto refuse = [&](const std::string& why) {
    throw failure(errc::invalid_argument,
                  fmt::format("{} is {}: {}; nothing was changed", name_of(line), line.status, why));
  };
  if (line.has_ended()) refuse("it has ended");
  if (of.ordered)
    throw failure(errc::store_busy,
                  fmt::format("somebody has ordered something of {} and {}: {}", name_of(line),
                              line.processes == 0 ? nobody_text(line) : "its owner has not acted yet",
                              for_terminal(*of.ordered)));
  if (what == saga_order::abort) {
    if (line.status == "COMPENSATING") refuse("it is undone already");
    if (!line.is_held()) return;
  } else if (!line.is_held()) {
    refuse(fmt::format("only one that is HELD takes `{}`", to_string(what)));
  }
  const auto possible = possible_orders(of);
  if (std::ranges::find(possible, to_string(what), &possible_order::order) != possible.end()) return;
  std::string names;
  for (const auto& one : possible) names += (names.empty() ? "" : ", ") + one.order;
  refuse(fmt::format("here it takes {}; see `settle saga show {}`", names, line.id.text()));
}

std::size_t orders_in(const inspect::saga_state& of) {
  return static_cast<std::size_t>(
      std::ranges::count(of.timeline, inspect::saga_act::ordered, &inspect::saga_entry::what));
}

// Whether nothing more happens by itself within a moment.
bool is_at_rest(const inspect::saga_state& of, timestamp now) {
  if (of.line.has_ended() || of.line.is_held()) return true;
  return !of.line.calling && (!of.line.due_at || *of.line.due_at > now + soon);
}

inspect::saga_state wait_for_owner(database& db, const inspect::saga_state& before, duration at_most) {
  const auto commits = db.watch();
  const auto until = db.env().now() + at_most;
  while (true) {
    auto state = read_again(db, before.line.id);
    const auto now = db.env().now();
    const bool acted = !state.ordered;
    if (acted && (orders_in(state) == orders_in(before) || is_at_rest(state, now))) return state;
    if (now >= until || state.line.processes == 0) return state;
    commits->wait(std::min<duration>(look_every, until - now), {});
  }
}

std::string outcome_text(const inspect::saga_state& of, timestamp now) {
  const auto& line = of.line;
  if (line.has_ended()) return fmt::format("it is {}", line.status);
  if (line.is_held())
    return fmt::format("and it is HELD again: {}; see `settle saga show {}`", for_terminal(line.last_error),
                       line.id.text());
  const auto doing = doing_now(of, now);
  return fmt::format("it is {}: {}", line.status, doing.empty() ? "it goes on" : doing.front());
}

int tell(const context& shared, const inspect::saga_state& of, saga_order what, timestamp now) {
  const bool noted = of.ordered.has_value();
  if (shared.json) {
    fmt::print("{}\n", json::serialize(json::object{{"saga", of.line.id.text()},
                                                    {"order", to_string(what)},
                                                    {"state", noted ? "noted" : "done"},
                                                    {"status", of.line.status},
                                                    {"last_error", safe_json_text(of.line.last_error)},
                                                    {"processes", of.line.processes}}));
    return exit_ok;
  }
  const auto text =
      !noted ? fmt::format("{}: {}", to_string(what), outcome_text(of, now))
      : of.line.processes == 0
          ? fmt::format("{} is noted; {}, so it is done when one is", to_string(what), nobody_text(of.line))
          : fmt::format("{} is noted; its owner has not acted yet: see `settle saga show {}`",
                        to_string(what), of.line.id.text());
  fmt::print("{}, {}\n", name_of(of.line), with_given(text, shared.given));
  return exit_ok;
}

int order(context& shared, const order_arguments& asked) {
  require_reason(asked.reason, "stays with the saga");
  const auto db = open_existing(shared.service_path(), file_kind::service);
  const auto before = find_saga(*db, asked.which);
  require_possible(before, asked.what);
  const auto who = operator_name(asked.who);
  if (!order_saga(*db, before.line.id, asked.what,
                  {.who = who, .reason = asked.reason, .result = asked.result}))
    throw failure(errc::store_busy, fmt::format("{} has gone on meanwhile; nothing was changed, look again: "
                                                "`settle saga show {}`",
                                                name_of(before.line), before.line.id.text()));
  shared.note_done(fmt::format("{} of saga {} was ordered", to_string(asked.what), before.line.id.text()));
  const auto at_most =
      std::chrono::duration_cast<duration>(std::chrono::duration<double>(asked.wait_seconds));
  const auto after = wait_for_owner(*db, before, at_most);
  if (!after.ordered && orders_in(after) == orders_in(before))
    throw failure(
        errc::invalid_argument,
        fmt::format("the owner of {} has refused it, and says why in its log (saga_order_refused); it "
                    "is {}",
                    name_of(before.line), after.line.status));
  return tell(shared, after, asked.what, db->env().now());
}

void add_order(command_syntax to, context& shared, saga_order what, const char* about, const char* examples) {
  const auto command = to.add_subcommand(std::string(to_string(what)), about);
  const auto asked = std::make_shared<order_arguments>();
  asked->what = what;
  command.add_option("ID", asked->which, "The saga's id, or its entity").option_text(" ").required();
  command
      .add_option("--reason", asked->reason,
                  "Why, in your words: at most 1,000 bytes; it stays with the saga")
      .option_text("TEXT");
  command.add_option("--who", asked->who, "Who decides it. Default: the name of the user")
      .option_text("NAME");
  if (what == saga_order::mark_done)
    command
        .add_option("--result", asked->result,
                    "What the step returned, as it is stored: as `settle saga show` shows results of\n"
                    "others. Default: empty, for a step that returns nothing")
        .option_text("TEXT");
  command
      .add_option("--wait", asked->wait_seconds,
                  "How long to wait for its owner to act. It acts also later. Default: 5")
      .option_text("SECONDS")
      .between(0.0, 3600.0);
  describe_command(command, examples);
  command.callback([&shared, asked] { shared.run = [&shared, asked] { return order(shared, *asked); }; });
}

}  // namespace

void add_saga_orders(command_syntax to, context& shared) {
  add_order(to, shared, saga_order::retry,
            "Let a saga that is HELD go on where it stopped, with all attempts: when what it\n"
            "needs is back, or its program was mended.",
            "  settle saga retry r-1 --reason 'the bank is back'");
  add_order(to, shared, saga_order::skip,
            "Of a saga that is HELD in an undo: that step needs none, or you have undone it. The\n"
            "steps before it are undone.",
            "  settle saga skip r-1 --reason 'refunded by telephone, ticket 4711'");
  add_order(to, shared, saga_order::mark_done,
            "Of a saga that is HELD because nobody knows whether a remote step was done: you have\n"
            "found out that it was, with this result. It goes on from there.",
            "  settle saga mark-done r-1 --result ch_42 --reason 'seen in the bank'\"'\"'s console'");
  add_order(to, shared, saga_order::abort,
            "Undo a saga that is under way or HELD: every step that may have run, the last first.\n"
            "Refused past a step after which nothing is undone.",
            "  settle saga abort r-1 --reason 'the customer has called'");
}

}  // namespace settle::cli
