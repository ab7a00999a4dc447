// settle dlq discard: decides that dead letters are never to run.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/dlq_filter.hpp"
#include "cli/dlq_text.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/stop_signals.hpp"
#include "cli/syntax.hpp"
#include "cli/text.hpp"
#include "inspect/dead_letters.hpp"
#include "settle/dead_letter.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

struct discard_arguments {
  letter_options which;
  std::string reason;
  bool all = false;
  bool dry_run = false;
};

int tell_what_would_be(const inspect::letters_plan& of, bool as_json) {
  if (as_json)
    fmt::print("{}\n",
               json::serialize(json::object{{"matching", of.matching}, {"first", summaries_json(of.first)}}));
  else
    fmt::print("would discard {}; nothing was changed\n{}", counted(of.matching, "letter"),
               first_letters_text(of.first, of.matching));
  return exit_ok;
}

int tell_outcome(const discard_outcome& of, bool stopped, const discard_arguments& asked, bool as_json) {
  const auto left = of.matching - of.discarded;
  if (as_json) {
    fmt::print("{}\n", json::serialize(json::object{
                           {"matching", of.matching}, {"discarded", of.discarded}, {"stopped", stopped}}));
  } else if (of.matching == 0) {
    fmt::print("nothing to discard: no letter is {} and matches\n", asked.which.status);
  } else {
    fmt::print("{} of {} discarded{}\n", grouped(of.discarded), counted(of.matching, "letter"),
               left == 0 ? std::string()
                         : fmt::format(", {} {}", grouped(left),
                                       stopped ? "left as they were" : "taken by somebody else"));
  }
  return stopped && left > 0 ? exit_found : exit_ok;
}

int discard_letters(context& shared, const discard_arguments& asked) {
  require_scope(asked.which, asked.all);
  if (asked.reason.empty() && !asked.dry_run)
    throw failure(errc::invalid_argument, "say why with --reason TEXT: it stays with the letter");
  const stop_signals signals;
  const auto db = open_existing(shared.service_path(), file_kind::service);
  const auto which = undecided_filter(asked.which, db->env().now());
  const auto plan = inspect::plan_discard(*db, which, asked.dry_run ? dry_run_shown_max : 0);
  require_found(which, plan.matching);
  if (asked.dry_run) return tell_what_would_be(plan, shared.json);
  const auto note = [&](const discard_outcome& so_far) {
    if (so_far.discarded > 0) shared.note_done(counted(so_far.discarded, "letter") + " discarded");
  };
  const auto outcome = discard(*db, which, asked.reason, signals.stop(), note);
  return tell_outcome(outcome, signals.stop().stop_requested(), asked, shared.json);
}

}  // namespace

void add_dlq_discard(command_syntax to, context& shared) {
  const auto command = to.add_subcommand(
      "discard",
      "Decide that dead letters are never to run. They stay, as DISCARDED, with the reason.\n"
      "Later messages of their keys that have waited for them run. It cannot be taken back.");
  const auto asked = std::make_shared<discard_arguments>();
  command.add_option("ID", asked->which.ids, "Letters to discard, by their numbers").option_text(" ");
  command
      .add_option("--reason", asked->reason,
                  "Why, in your words: at most 1,000 bytes. `settle dlq show` tells it")
      .option_text("TEXT");
  command.add_flag("--all", asked->all, "Every letter that is NEW").option_text(" ");
  command.add_flag("--dry-run", asked->dry_run, "Only say what would be discarded").option_text(" ");
  add_letter_options(command, asked->which,
                     "NEW, or REPLAYING: those that were sent and that nobody has run; a copy that still\n"
                     "comes does nothing then. Default: NEW",
                     "--given-up");
  describe_command(command,
                   "  settle dlq discard 7 --reason 'the order was cancelled by hand'\n"
                   "  settle dlq discard --consumer warehouse --given-up too_old --dry-run");
  command.callback(
      [&shared, asked] { shared.run = [&shared, asked] { return discard_letters(shared, *asked); }; });
}

}  // namespace settle::cli
