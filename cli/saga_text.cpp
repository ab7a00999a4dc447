#include "cli/saga_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/hints.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"

namespace settle::cli {
namespace {

using inspect::saga_act;
using inspect::saga_end;
using inspect::saga_entry;

constexpr std::size_t error_shown_max = 60;  // bytes, in a table
constexpr std::size_t value_shown_max = 100;

std::string value_text(const std::optional<std::string>& bytes) {
  if (!bytes || bytes->empty()) return {};
  return is_printable(*bytes) ? cut(*bytes, value_shown_max)
                              : counted(static_cast<std::int64_t>(bytes->size()), "byte");
}

std::string until_text(timestamp until, timestamp now) {
  return until > now ? fmt::format("{} (in {})", short_time(until), age(until - now))
                     : fmt::format("{} ({} ago)", short_time(until), age(now - until));
}

std::string event_text(const saga_entry& of) { return for_terminal(of.name) + " of " + for_terminal(of.key); }

std::string title_of(const saga_entry& of) {
  const auto name = for_terminal(of.name);
  switch (of.what) {
    case saga_act::step:
      return name;
    case saga_act::call:
      return name + " (remote)";
    case saga_act::sleep:
      return "sleep";
    case saga_act::wait:
      return "wait for " + event_text(of);
    case saga_act::child:
      return "child " + name;
    case saga_act::version:
      return "version of " + name;
    case saga_act::undo_begun:
      return "— undo begins";
    case saga_act::undo:
      return "undo of " + name;
    case saga_act::ordered:
      return "— ordered: " + name;
    case saga_act::held:
      return name.empty() ? "— HELD" : "— HELD at " + name;
  }
  return name;
}

// "done: 42", "refused: no room", "until 2026-11-21T10:00:00Z (in 2 d 3 h)"
std::string ending_of(const saga_entry& of, timestamp now) {
  const auto with = [](std::string_view word, const std::string& more) {
    return more.empty() ? std::string(word) : fmt::format("{}: {}", word, more);
  };
  const auto why = cut(of.why, value_shown_max);
  if (of.what == saga_act::undo_begun || of.what == saga_act::ordered || of.what == saga_act::held)
    return why;
  const bool waits = of.what == saga_act::sleep || of.what == saga_act::wait;
  switch (of.end) {
    case saga_end::none:
      if (waits) return of.until ? "until " + until_text(*of.until, now) : "waits, without an end";
      return "under way";
    case saga_end::refused:
      return with(of.was_unknown ? "refused, after an attempt of unknown outcome" : "refused", why);
    case saga_end::unknown:
      return with("outcome unknown", why);
    case saga_end::timed_out:
      return "did not come in time";
    case saga_end::done:
      break;
  }
  if (of.what == saga_act::sleep) return "over";
  if (of.what == saga_act::wait)
    return with(of.by.empty() ? "came" : "came, by hand of " + cut(of.by, value_shown_max),
                value_text(of.result));
  return with(of.was_unknown ? "done, after an attempt of unknown outcome" : "done", value_text(of.result)) +
         (of.undone ? "; undone later" : "");
}

std::string took_text(const saga_entry& of) {
  if (!of.ended_at) return {};
  const auto took = *of.ended_at - of.at;
  return took < std::chrono::seconds(1)
             ? fmt::format("{} ms", std::chrono::duration_cast<std::chrono::milliseconds>(took).count())
             : age(took);
}

std::string timeline_text(const inspect::saga_timeline& of, timestamp now) {
  if (of.empty()) return "\n  it has not done anything yet\n";
  std::vector<std::vector<std::string>> rows{{"when", "what", "took", ""}};
  for (const auto& one : of)
    rows.push_back({short_time(one.at), title_of(one), took_text(one), ending_of(one, now)});
  return "\n" + table({align::left, align::left, align::right, align::left}, rows, 2);
}

std::string age_column(const inspect::saga_line& of, timestamp now) {
  return of.ended_at ? fmt::format("{} ago", age(now - *of.ended_at)) : age(now - of.created_at);
}

// What the row of a list says about its state: an error, or when it goes on.
std::string note_of(const inspect::saga_line& of, timestamp now) {
  if (of.is_held() || !of.last_error.empty()) return cut(of.last_error, error_shown_max);
  if (of.has_ended()) return {};
  if (of.processes == 0) return "no process that knows it is running";
  if (of.calling) return "a call is out";
  if (of.due_at && *of.due_at > now) return "goes on in " + age(*of.due_at - now);
  return of.due_at ? "due" : "waits for an event";
}

std::string order_command(const inspect::saga_line& of, std::string_view order, std::string_view more = {}) {
  return fmt::format("settle saga {} {}{} --reason TEXT", order, of.id.text(), more);
}

std::string processes_text(const inspect::saga_line& of) {
  if (of.processes == 0) return nobody_text(of);
  return of.processes == 1 ? "1 process knows it" : grouped(of.processes) + " processes know it";
}

std::string help_text(const inspect::saga_state& of) {
  std::string out;
  if (of.line.is_held()) {
    out = fmt::format("\n! HELD, a person is needed: {}\n", for_terminal(of.line.last_error));
    for (const auto& one : possible_orders(of))
      out += fmt::format("  `{}`\n      {}\n", one.command, one.effect);
  } else if (const auto command = signal_command(of); !command.empty()) {
    out = fmt::format("\nTo deliver by hand what it waits for: `{}`\n", command);
  }
  return out;
}

}  // namespace

std::string name_of(const inspect::saga_line& of) {
  return fmt::format("{} {} of {}", for_terminal(of.type), of.version, for_terminal(of.entity));
}

std::string nobody_text(const inspect::saga_line& of) {
  return fmt::format("no process that knows {} {} of host {} is running", for_terminal(of.type), of.version,
                     for_terminal(of.host));
}

std::vector<std::string> doing_now(const inspect::saga_state& of, timestamp now) {
  std::vector<std::string> all;
  if (of.line.has_ended() || of.line.is_held()) return all;
  const bool undoing = of.line.status == "COMPENSATING";
  for (const auto& one : of.timeline) {
    if (one.end == saga_end::done || one.end == saga_end::refused || one.end == saga_end::timed_out) continue;
    const bool is_undo = one.what == saga_act::undo;
    if (undoing && !is_undo && one.what != saga_act::call) continue;
    const auto what = title_of(one);
    const bool waits = one.what == saga_act::sleep || one.what == saga_act::wait;
    all.push_back(what + ": " + ending_of(one, now) + (waits || of.line.calling ? "" : ", no call is out"));
  }
  if (of.line.attempts > 0)
    all.push_back(fmt::format("{}{}: {}", counted(of.line.attempts, "failed attempt"),
                              of.line.due_at && *of.line.due_at > now
                                  ? ", the next one in " + age(*of.line.due_at - now)
                                  : std::string(),
                              cut(of.line.last_error, value_shown_max)));
  else if (all.empty())
    all.push_back(of.line.processes == 0 ? "nothing: " + nobody_text(of.line)
                  : of.line.due_at       ? "goes on " + until_text(*of.line.due_at, now)
                                         : "waits to be woken");
  return all;
}

std::string sagas_text(const std::vector<inspect::saga_line>& of, timestamp now) {
  std::vector<std::vector<std::string>> rows{{"number", "status", "type", "entity", "at", "age", "id", ""}};
  for (const auto& one : of)
    rows.push_back({std::to_string(one.no), one.status,
                    fmt::format("{} {}", for_terminal(one.type), one.version), for_terminal(one.entity),
                    for_terminal(one.current_step), age_column(one, now), one.id.text(), note_of(one, now)});
  constexpr auto left = align::left, right = align::right;
  return table({right, left, left, left, left, right, left, left}, rows, 0);
}

std::string saga_text(const inspect::saga_state& of, timestamp now) {
  const auto& line = of.line;
  auto out = fmt::format("{}: {}\n", name_of(line), line.status);
  const auto field = [&](std::string_view name, const std::string& content) {
    if (!content.empty()) out += fmt::format("  {:<8} {}\n", name, content);
  };
  field("id", line.id.text());
  field("host", for_terminal(line.host) + (line.has_ended() ? "" : "; " + processes_text(line)));
  field("parent", of.parent ? of.parent->text() : "");
  field("started", fmt::format("{} ({} ago)", short_time(line.created_at), age(now - line.created_at)));
  if (line.deadline && !line.has_ended()) field("deadline", until_text(*line.deadline, now));
  if (line.ended_at)
    field("ended",
          fmt::format("{}, after {}", short_time(*line.ended_at), age(*line.ended_at - line.created_at)));
  if (line.has_ended()) field("because", for_terminal(line.last_error));
  field("input", value_text(of.input));
  field("result", value_text(of.result));
  for (const auto& one : doing_now(of, now)) field("now", one);
  if (of.ordered) field("ordered", "its owner has not acted yet: " + cut(*of.ordered, value_shown_max));
  return out + timeline_text(of.timeline, now) + help_text(of);
}

std::vector<possible_order> possible_orders(const inspect::saga_state& of) {
  std::vector<possible_order> all;
  if (!of.line.is_held()) return all;
  const auto held =
      std::ranges::find(of.timeline.rbegin(), of.timeline.rend(), saga_act::held, &saga_entry::what);
  const auto at = held == of.timeline.rend() ? std::string() : held->name;
  const bool undoing =
      std::ranges::find(of.timeline, saga_act::undo_begun, &saga_entry::what) != of.timeline.end();
  const auto add = [&](std::string order, std::string effect, std::string_view more = {}) {
    auto command = order_command(of.line, order, more);
    all.push_back({std::move(order), std::move(command), std::move(effect)});
  };
  const auto step = for_terminal(at);
  if (undoing && !at.empty()) {
    add("retry", fmt::format("tries the undo of {} again, with all attempts", step));
    add("skip", fmt::format("{} needs no undo, or you have undone it; those before it are undone", step));
    return all;
  }
  if (undoing) {
    add("retry", "goes on with the undo");
    return all;
  }
  const auto open = std::ranges::find_if(of.timeline, [&](const auto& one) {
    return one.what == saga_act::call && one.name == at &&
           (one.end == saga_end::none || one.end == saga_end::unknown);
  });
  if (!at.empty() && open != of.timeline.end()) {
    add("retry", fmt::format("asks for {} again, with the same key", step));
    add("mark-done", fmt::format("you have found out that {} was done, with this result", step),
        " --result TEXT");
  } else {
    add("retry", "goes on where it stopped: after the program, or what it needs, was mended");
  }
  add("abort", "undoes what was done, unless it is past the step after which nothing is undone");
  return all;
}

std::string signal_command(const inspect::saga_state& of) {
  if (of.line.status != "RUNNING") return {};
  for (const auto& one : of.timeline)
    if (one.what == saga_act::wait && one.end == saga_end::none)
      return fmt::format(
          "settle saga signal{}{}{} --payload TEXT --reason TEXT", argument_text("--host", of.line.host),
          argument_text("--type", one.name.substr(one.name.rfind('/') + 1)), argument_text("--key", one.key));
  return {};
}

}  // namespace settle::cli
