// settle dlq replay: sends dead letters to the consumers that gave them up.
#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/dlq_filter.hpp"
#include "cli/dlq_text.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/hints.hpp"
#include "cli/stop_signals.hpp"
#include "cli/syntax.hpp"
#include "cli/text.hpp"
#include "inspect/dead_letters.hpp"
#include "settle/dead_letter.hpp"

namespace settle::cli {

namespace {

namespace json = boost::json;

struct replay_arguments {
  letter_options which;
  replay_options how;
  std::int64_t wait_seconds = 60;
  bool all = false;
  bool dry_run = false;
};

// What an operator did not ask for in so many words.
void tell_spared(std::int64_t spared) {
  if (spared == 0) return;
  fmt::print(stderr,
             "settle: {} left out, because {} have been applied long ago (beyond_dedup_horizon): to run "
             "{} all the same, name the ids or --reason beyond_dedup_horizon\n",
             spared == 1 ? "1 letter was" : grouped(spared) + " letters were",
             spared == 1 ? "it may" : "they may", spared == 1 ? "it" : "them");
}

int tell_what_would_be(const inspect::letters_plan& of, bool as_json) {
  if (as_json) {
    fmt::print("{}\n", json::serialize(json::object{{"matching", of.matching},
                                                    {"left_out", of.left_out},
                                                    {"first", summaries_json(of.first)}}));
    return exit_ok;
  }
  fmt::print("would replay {}; nothing was sent\n", counted(of.matching, "letter"));
  std::fflush(stdout);
  tell_spared(of.left_out);
  fmt::print("{}", first_letters_text(of.first, of.matching));
  return exit_ok;
}

std::string_view name_of(replay_end end) {
  switch (end) {
    case replay_end::done:
      return "done";
    case replay_end::too_many_failures:
      return "too_many_failures";
    case replay_end::timed_out:
      return "timed_out";
    case replay_end::stopped:
      return "stopped";
  }
  return "stopped";
}

// What to do about an end that is not done. Empty: nothing.
std::string advice(const replay_outcome& of, std::int64_t wait_seconds) {
  const auto& n = of.counts;
  const auto waiting = fmt::format("{} REPLAYING and {} when the consumer gets to {}",
                                   n.waiting == 1 ? "It stays" : "They stay", n.waiting == 1 ? "runs" : "run",
                                   n.waiting == 1 ? "it" : "them");
  switch (of.end) {
    case replay_end::done:
      return {};
    case replay_end::too_many_failures:
      return fmt::format(
          "stopped, because too many of a batch failed again ({} in all): they are NEW again, and "
          "`settle dlq show ID` tells the error; mend the cause, then replay the rest",
          grouped(n.failed_again));
    case replay_end::timed_out:
      return fmt::format(
          "stopped, because {} not run within {} s: is the consumer running, and a relay for this "
          "database? {}. To send it once more: `settle dlq replay --all --status REPLAYING`",
          n.waiting == 1 ? "1 letter was" : grouped(n.waiting) + " letters were", wait_seconds, waiting);
    case replay_end::stopped:
      return n.waiting == 0
                 ? "stopped; what was not sent is as it was"
                 : fmt::format("stopped while {} under way. {}",
                               n.waiting == 1 ? "1 letter was" : grouped(n.waiting) + " letters were",
                               waiting);
  }
  return {};
}

int tell_outcome(const replay_outcome& of, const replay_arguments& asked, std::int64_t spared,
                 const context& shared) {
  const auto& n = of.counts;
  const bool as_json = shared.json;
  const auto what_to_do = with_given(advice(of, asked.wait_seconds), shared.given);
  if (as_json) {
    json::object made{{"end", name_of(of.end)}, {"matching", n.matching},         {"sent", n.sent},
                      {"ran", n.ran},           {"failed_again", n.failed_again}, {"waiting", n.waiting},
                      {"left_out", spared}};
    if (!what_to_do.empty()) made["advice"] = what_to_do;
    fmt::print("{}\n", json::serialize(made));
  } else if (n.matching == 0) {
    fmt::print("nothing to replay: no letter is {} and matches\n", asked.which.status);
  } else {
    fmt::print("{} of {} replayed", grouped(n.ran), counted(n.matching, "letter"));
    if (n.failed_again > 0) fmt::print(", {} failed again", grouped(n.failed_again));
    if (n.waiting > 0) fmt::print(", {} waiting", grouped(n.waiting));
    const auto left = n.matching - n.sent;
    if (left > 0)
      fmt::print(", {} {}", grouped(left),
                 of.end == replay_end::done ? "taken by somebody else" : "not sent");
    fmt::print("\n");
    std::fflush(stdout);
    if (!what_to_do.empty()) fmt::print(stderr, "settle: {}\n", what_to_do);
  }
  if (!as_json) tell_spared(spared);
  return of.end == replay_end::done ? exit_ok : exit_found;
}

// One line that is written over, for people who watch.
class progress_line {
 public:
  void operator()(const replay_progress& n) {
    auto text = fmt::format("{} of {} sent, {} ran, {} failed again, {} waiting", grouped(n.sent),
                            grouped(n.matching), grouped(n.ran), grouped(n.failed_again), grouped(n.waiting));
    if (text == shown_) return;
    fmt::print(stderr, "\r\x1b[K{}", text);
    shown_ = std::move(text);
  }

 private:
  std::string shown_;
};

int replay_letters(context& shared, replay_arguments asked) {
  require_scope(asked.which, asked.all);
  const stop_signals signals;
  const auto db = open_existing(shared.service_path(), file_kind::service);
  const auto which = undecided_filter(asked.which, db->env().now());
  asked.how.wait_max = std::chrono::seconds(asked.wait_seconds);
  const auto plan =
      inspect::plan_replay(*db, which, asked.how.wait_max, asked.dry_run ? dry_run_shown_max : 0);
  require_found(which, plan.matching);
  if (asked.dry_run) return tell_what_would_be(plan, shared.json);
  const bool watched = !shared.json && ::isatty(STDERR_FILENO) == 1;
  progress_line line;
  const auto progress = [&](const replay_progress& n) {
    if (n.sent > 0)
      shared.note_done(fmt::format("{} sent, {} ran", counted(n.sent, "letter"), grouped(n.ran)));
    if (watched) line(n);
  };
  const auto outcome = replay(*db, which, asked.how, signals.stop(), progress);
  if (watched) fmt::print(stderr, "\r\x1b[K");
  return tell_outcome(outcome, asked, plan.left_out, shared);
}

void add_pace(command_syntax to, replay_arguments& into) {
  to.add_option("--batches", into.how.batches,
                "Sizes of the first batches; the last one is repeated. Each is sent when the one\n"
                "before has run or failed, so that a mistake costs few. Default: 1,2,5,20,100;\n"
                "each at most 1000")
      .option_text("N,N,...")
      .delimiter(',')
      .between(1, 1000);
  to.add_option("--rate", into.how.rate_max,
                "At most so many letters per second, to spare what the consumer depends on;\n"
                "0.5 is one in two seconds. Default: 0, no limit: the consumer sets the pace")
      .option_text("N")
      .between(0.0, 1e9);
  to.add_option("--failures-max", into.how.failures_max,
                "Stop when more than this part of a batch fails again, 0 to 1. Default: 0.1, so\n"
                "that the first letters all have to run")
      .option_text("PART")
      .between(0.0, 1.0);
  to.add_option("--wait", into.wait_seconds,
                "How long to wait for a batch to be run, in seconds. With --status REPLAYING also\n"
                "how long ago a letter must have been sent. Default: 60, enough for a consumer\n"
                "that is starting")
      .option_text("SECONDS")
      .between(0, 86'400);
}

}  // namespace

void add_dlq_replay(command_syntax to, context& shared) {
  const auto command =
      to.add_subcommand("replay",
                        "Send dead letters again, through their topic, to the consumer that gave them up.\n"
                        "It runs each of them once; every other consumer skips them. The consumer and a "
                        "relay have to be running.\n"
                        "Ends with 0 if everything was sent and few failed, with 1 if it stopped before.");
  const auto asked = std::make_shared<replay_arguments>();
  command.add_option("ID", asked->which.ids, "Letters to replay, by their numbers").option_text(" ");
  command
      .add_flag("--all", asked->all,
                "Every letter that is NEW, but none that may have been applied long ago: those are\n"
                "replayed by their ids or with --reason beyond_dedup_horizon")
      .option_text(" ");
  command.add_flag("--dry-run", asked->dry_run, "Only say what would be replayed").option_text(" ");
  add_letter_options(command, asked->which,
                     "NEW, or REPLAYING: those that were sent at least --wait ago and that nobody has\n"
                     "run, to be sent once more. Default: NEW");
  add_pace(command, *asked);
  describe_command(command,
                   "  settle dlq replay 7 8\n"
                   "  settle dlq replay --consumer warehouse --type order.placed --dry-run\n"
                   "  settle dlq replay --all --rate 20");
  command.callback(
      [&shared, asked] { shared.run = [&shared, asked] { return replay_letters(shared, *asked); }; });
}

}  // namespace settle::cli
