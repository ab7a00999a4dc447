#include "saga/progress.hpp"

#include <algorithm>

#include "base/quadratic_wait.hpp"
#include "saga/body_run.hpp"
#include "saga/commands.hpp"
#include "saga/orders.hpp"

namespace settle::sagas {

void progress::run(std::span<const call_answer> answers) {
  of_.held_now = false;
  of_.wants_more = false;
  of_.steps = of_.undos = of_.replays = 0;
  of_.retried.clear();
  of_.took.clear();
  of_.body_held = {};
  of_.was_ordered = of_.row.wanted.has_value();
  if (of_.was_ordered) obey();
  note_lost_calls();
  keep_deadline();
  run_body();  // who waits for an answer decides what follows from it
  for (const auto& one : answers) take(one);
  for (const int n : of_.overdue_replies) take_no_reply(n);
  keep_deadline();
  send_due();
  run_body();
  if (of_.status == saga_status::compensating) undo();
  // What came while it was held was not looked at.
  if (of_.was_ordered && of_.status == saga_status::running) of_.wants_more = true;
}

// A call whose answer nobody here will get: that of a process which was replaced, or of this one before it
// lost its ownership. Without `calling` all that are open only wait to be repeated.
void progress::note_lost_calls() {
  for (const auto& row : of_.rows.rows()) {
    const bool undo = row.kind == row_kind::undo_intent;
    if (row.kind != row_kind::intent && !undo) continue;
    const int n = undo ? *row.of : row.n;
    if (of_.rows.at(n).kind == row_kind::child || is_command(of_, row)) continue;
    const bool answered =
        undo ? of_.rows.about(n, row_kind::undone) != nullptr : of_.rows.answer_of(n) != nullptr;
    if (answered || of_.calls.contains({n, undo})) continue;
    auto& call = of_.calls[{n, undo}];
    call.attempts = of_.attempts;
    call.retry_at = of_.now;
    const auto step = of_.step(of_.rows.at(n).name);
    call.asks = step && step->on_unknown == unknown::ask && of_.rows.about(n, row_kind::unknown) != nullptr;
    if (of_.row.calling && !undo && of_.status == saga_status::running)
      outcome_unknown(n, call, "the process that asked for it has not noted an answer");
  }
  of_.row.calling = false;  // known from now on
}

void progress::keep_deadline() {
  if (of_.status != saga_status::running || !of_.row.deadline || *of_.row.deadline > of_.now) return;
  if (pivot_passed(of_.rows, of_.lookup())) {
    of_.row.deadline.reset();
    return;
  }
  is_too_late_ = true;
  if (of_.is_calling()) return;  // its answers come first, and nothing new is begun
  of_.row.deadline.reset();
  of_.fail("its deadline has passed");
}

void progress::run_body() {
  if (of_.status != saga_status::running || is_too_late_) return;
  if (!of_.body) {
    if (of_.retry_at && *of_.retry_at > of_.now) return;
    of_.body = std::make_unique<body_run>(of_);
  }
  of_.body->advance(in_);
  if (of_.body->is_over()) of_.body.reset();
}

void progress::take(const call_answer& answer) {
  const bool undo = answer.op == call_op::undo;
  const auto found = of_.calls.find({answer.n, undo});
  if (found == of_.calls.end() || !found->second.out) return;
  found->second.out = false;
  if (undo)
    take_undone(answer, found->second);
  else
    take_performed(answer, found->second);
  const bool ended =
      undo ? of_.rows.about(answer.n, row_kind::undone) != nullptr : of_.rows.answer_of(answer.n) != nullptr;
  if (ended) of_.calls.erase({answer.n, undo});
}

// The body is gone, and nothing is tried again: what is known now is what the undo goes by.
void progress::note_for_undo(const call_answer& answer) {
  const auto& row = of_.rows.at(answer.n);
  journal_row noted{
      .kind = row_kind::refused, .scope = row.scope, .name = row.name, .result = answer.text, .of = answer.n};
  if (answer.end == call_end::done) noted.kind = row_kind::outcome;
  if (answer.end == call_end::unknown) {
    if (of_.rows.about(answer.n, row_kind::unknown) != nullptr) return;
    noted.kind = row_kind::unknown;
  }
  of_.note(std::move(noted));
}

void progress::take_performed(const call_answer& answer, open_call& call) {
  const auto& row = of_.rows.at(answer.n);
  if (of_.status == saga_status::compensating) return note_for_undo(answer);
  switch (answer.end) {
    case call_end::done:
      of_.note({.kind = row_kind::outcome,
                .scope = row.scope,
                .name = row.name,
                .result = answer.text,
                .of = answer.n});
      ++of_.steps;
      of_.succeeded();
      break;
    case call_end::refused:
      give_up(answer.n, call, answer.text, answer.op == call_op::find);
      break;
    case call_end::not_made:
      repeat_later(answer.n, false, call, answer.text, answer.wait);
      break;
    case call_end::unknown:
      outcome_unknown(answer.n, call, answer.text, answer.wait);
      break;
  }
}

// It was sent, so it may have been done, or may still be.
void progress::take_no_reply(int n) {
  const auto row = of_.rows.at(n);
  const std::string why = "nobody has answered it in time";
  if (of_.rows.about(n, row_kind::unknown) == nullptr)
    of_.note({.kind = row_kind::unknown, .scope = row.scope, .name = row.name, .result = why, .of = n});
  of_.last_error = row.name + ": " + why;
  open_call none;
  if (of_.status == saga_status::running) give_up(n, none, why);
}

// The undo may follow from it later, so it is noted before anything else is done about it.
void progress::outcome_unknown(int n, open_call& call, const std::string& why, duration at_least) {
  const auto row = of_.rows.at(n);
  if (of_.rows.about(n, row_kind::unknown) == nullptr)
    of_.note({.kind = row_kind::unknown, .scope = row.scope, .name = row.name, .result = why, .of = n});
  const auto step = of_.step(row.name);
  if (!step) {
    of_.hold("the step " + row.name + " is not among those of " + of_.what.type, n);
    return;
  }
  if (step->on_unknown == unknown::hold) {
    of_.hold("nobody knows whether the step " + row.name + " was done: " + why, n);
    return;
  }
  call.asks = step->on_unknown == unknown::ask;
  repeat_later(n, false, call, why, at_least);
}

void progress::repeat_later(int n, bool undo, open_call& call, const std::string& why, duration at_least) {
  const auto step = of_.step(of_.rows.at(n).name);
  if (!step) return of_.hold("the step " + of_.rows.at(n).name + " is not known here", n);
  ++call.attempts;
  of_.attempts = std::max(of_.attempts, call.attempts);
  of_.last_error = why;
  const auto max = undo ? step->retry.undo_attempts_max : step->retry.attempts_max;
  if (call.attempts >= max) {
    if (undo)
      of_.hold("the undo of " + step->name + " has failed: " + why, n);
    else
      give_up(n, call, why);
    return;
  }
  of_.retried.push_back(step->name);
  call.retry_at =
      of_.now + std::max(at_least, quadratic_wait(call.attempts, step->retry.wait, step->retry.wait_max));
}

// What may have been done and cannot be undone is for a person to decide, and so is what has to be done
// because nothing is undone any more.
void progress::give_up(int n, open_call& call, const std::string& why, bool certain) {
  const auto row = of_.rows.at(n);
  const auto facts = of_.lookup()(row.name).value_or(step_facts{});
  const bool in_doubt = !certain && of_.rows.about(n, row_kind::unknown) != nullptr;
  const auto* asked = of_.body ? of_.body->asked_by(n) : nullptr;
  const bool must_work = asked != nullptr && !asked->may_fail && pivot_passed(of_.rows, of_.lookup(), n);
  if ((in_doubt && (!facts.has_undo || facts.pivot)) || must_work) {
    call.retry_at.reset();
    of_.hold(
        "the step " + row.name + (in_doubt ? " may or may not have been done: " : " was refused: ") + why, n);
    return;
  }
  journal_row refused{
      .kind = row_kind::refused, .scope = row.scope, .name = row.name, .result = why, .of = n};
  if (certain) refused.input = std::string(never_done);
  of_.note(std::move(refused));
  of_.attempts = 0;
}

void progress::take_undone(const call_answer& answer, open_call& call) {
  const auto row = of_.rows.at(answer.n);
  if (answer.end == call_end::done) {
    of_.note({.kind = row_kind::undone, .scope = row.scope, .name = row.name, .of = answer.n});
    ++of_.undos;
    of_.succeeded();
  } else if (answer.end == call_end::refused) {
    of_.hold("the undo of " + row.name + " was refused: " + answer.text, answer.n);
  } else {
    repeat_later(answer.n, true, call, answer.text, answer.wait);
  }
}

void progress::send_due() {
  if (of_.status != saga_status::running && of_.status != saga_status::compensating) return;
  for (auto& [key, call] : of_.calls) {
    const auto [n, undo] = key;
    if (call.out || !call.retry_at || *call.retry_at > of_.now) continue;
    // What is only waited for is not begun again once everything is undone.
    if (!undo && of_.status == saga_status::compensating) continue;
    const auto op = undo ? call_op::undo : call.asks ? call_op::find : call_op::perform;
    auto order = of_.order_of(n, op);
    if (!order.step) {
      of_.hold("the step " + of_.rows.at(n).name + " is not known here", n);
      return;
    }
    call.out = true;
    call.retry_at.reset();
    in_.calls.push_back(std::move(order));
  }
}

// Strictly backwards, one after the other: what was done on top of something goes before it.
void progress::undo() {
  of_.body.reset();
  while (of_.status == saga_status::compensating) {
    if (of_.is_calling() || awaits_replies(of_)) return;  // what is under way in another branch ends first
    const auto next = next_undo(of_.rows, of_.lookup());
    if (!next) return end_undo();
    const auto row = of_.rows.at(next->n);
    if (next->need == undo_need::hold) {
      const bool known = of_.step(row.name) != nullptr;
      return of_.hold(known ? "the step " + row.name + " may have been done and has no undo"
                            : "the step " + row.name + " is not known here, and may have to be undone",
                      next->n);
    }
    if (of_.retry_at && *of_.retry_at > of_.now) return;
    if (next->need == undo_need::child) {
      if (!undo_child(next->n)) return;
      continue;
    }
    if (!in_.take_step()) {
      of_.wants_more = true;
      return;
    }
    const auto step = of_.step(row.name);
    if (step->remote) return undo_remote(next->n);
    if (!undo_local(next->n, *step)) return;
    if (!in_.may_run_ahead()) {
      of_.wants_more = true;
      return;
    }
  }
}

bool progress::undo_local(int n, const detail::step_core& step) {
  const auto row = of_.rows.at(n);
  const auto* answer = row.kind == row_kind::intent ? of_.rows.about(n, row_kind::outcome) : &row;
  const auto* result = answer != nullptr && answer->result ? &*answer->result : nullptr;
  const auto ended = in_.perform([&](transaction& tx) {
    if (step.command) {
      call via(of_.order_of(n, call_op::undo).facts);
      step.undo(&tx, &via, row.input.value_or(""), result);
    } else {
      step.undo(&tx, nullptr, row.input.value_or(""), result);
    }
    return std::string();
  });
  if (ended.how == performed::end::aborted) return false;
  if (ended.how == performed::end::failed) {
    const bool passing = ended.why != failure_class::permanent;
    if (!passing || !of_.retry_later(step.retry, true, ended.why, ended.error))
      of_.hold("the undo of " + step.name + " has failed: " + ended.error, n);
    else
      of_.retried.push_back(step.name);
    return false;
  }
  of_.note({.kind = row_kind::undone, .scope = row.scope, .name = row.name, .of = n});
  ++of_.undos;
  of_.succeeded();
  return true;
}

void progress::undo_remote(int n) {
  const auto row = of_.rows.at(n);
  if (of_.calls.contains({n, true})) return;  // it waits for its next attempt
  if (of_.rows.about(n, row_kind::undo_intent) == nullptr)
    of_.note({.kind = row_kind::undo_intent, .scope = row.scope, .name = row.name, .of = n});
  of_.calls[{n, true}] = {.out = true};
  in_.calls.push_back(of_.order_of(n, call_op::undo));
}

// By its own owner. What comes before it in this journal waits until that has ended, also while it is HELD.
bool progress::undo_child(int n) {
  const auto row = of_.rows.at(n);
  const auto order = [&] {
    in_.kin.undos.push_back({of_.child_id(n), of_.rows.last(row_kind::undo_begun)->result.value_or("")});
    of_.wants_more = true;
    return false;
  };
  if (of_.rows.about(n, row_kind::undo_intent) == nullptr) {
    of_.note({.kind = row_kind::undo_intent, .scope = row.scope, .name = row.name, .of = n});
    return order();
  }
  const auto found = of_.children.find(n);
  if (found == of_.children.end()) {
    of_.hold(of_.child_text(n) + ", which has to be undone, is not there", n);
    return false;
  }
  const auto& child = found->second;
  switch (child.status) {
    case saga_status::failed:
    case saga_status::compensated:
      of_.note({.kind = row_kind::undone, .scope = row.scope, .name = row.name, .of = n});
      ++of_.undos;
      of_.succeeded();
      return true;
    case saga_status::completed:
      return order();
    case saga_status::held:
      of_.last_error = "it waits for " + of_.child_text(n) + ", which is HELD: " + child.error;
      return false;
    case saga_status::running:
      if (!child.is_ordered) return order();
      [[fallthrough]];
    case saga_status::compensating:
      of_.last_error = "it waits until " + of_.child_text(n) + " is undone";
      return false;
  }
  return false;
}

void progress::end_undo() {
  of_.last_error = of_.rows.last(row_kind::undo_begun)->result.value_or("");
  of_.end(anything_ran(of_.rows) ? saga_status::compensated : saga_status::failed);
}

bool progress::mark_done(int n, const std::string& result) {
  const auto row = of_.rows.at(n);
  if (row.kind != row_kind::intent || of_.rows.answer_of(n) != nullptr) return false;
  of_.note({.kind = row_kind::outcome, .scope = row.scope, .name = row.name, .result = result, .of = n});
  return true;
}

// Its parent is undone: this one as well, also if it had completed.
void progress::obey_parent(const std::string& why) {
  if (of_.rows.last(row_kind::undo_begun) != nullptr) return;  // it is at it
  of_.note({.kind = row_kind::operated, .name = "undo", .result = "its parent: " + why});
  of_.succeeded();
  std::erase_if(of_.calls, [](const auto& one) { return !one.second.out; });
  of_.body.reset();
  of_.status = saga_status::running;
  of_.fail("its parent is undone: " + why);
}

void progress::obey() {
  const auto order = read_order(*of_.row.wanted);
  of_.row.wanted.reset();
  if (!order) {
    order_refused_ = "this program does not know the order";
    return;
  }
  if (order->by_parent) return obey_parent(order->reason);
  const bool undoing = of_.rows.last(row_kind::undo_begun) != nullptr;
  const auto* held = of_.rows.last(row_kind::held);
  const bool is_held = of_.status == saga_status::held;
  const auto refuse = [&](const char* why) { order_refused_ = why; };

  if (order->what == saga_order::abort) {
    if (undoing || has_ended(of_.status)) return refuse("it is undone already");
    if (pivot_passed(of_.rows, of_.lookup()))
      return refuse("it is past the step after which nothing is undone");
  } else if (!is_held || held == nullptr) {
    return refuse("it is not held");
  }
  if (order->what == saga_order::skip && (!undoing || !held->of)) return refuse("it is not held in an undo");
  if (order->what == saga_order::mark_done && (undoing || !held->of))
    return refuse("it is not held at a remote step");
  const int of_step = held != nullptr ? held->of.value_or(0) : 0;
  if (order->what == saga_order::mark_done && !mark_done(of_step, order->result))
    return refuse("it is not held at a remote step that has no answer");

  of_.note({.kind = row_kind::operated,
            .name = std::string(to_string(order->what)),
            .result = order->who + ": " + order->reason});
  of_.succeeded();
  std::erase_if(of_.calls, [](const auto& one) { return !one.second.out; });
  of_.status = undoing ? saga_status::compensating : saga_status::running;
  if (order->what == saga_order::skip) {
    const auto row = of_.rows.at(of_step);
    of_.note({.kind = row_kind::undone, .scope = row.scope, .name = row.name, .of = row.n});
  }
  if (order->what == saga_order::abort) of_.fail("aborted by " + order->who + ": " + order->reason);
}

}  // namespace settle::sagas
