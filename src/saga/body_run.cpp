#include "saga/body_run.hpp"

#include <algorithm>
#include <utility>

#include "base/hash.hpp"
#include "base/text.hpp"

namespace settle::sagas {
namespace {

constexpr std::size_t error_bytes_max = 1000;
constexpr step_retry body_retry = {.attempts_max = 3};

using detail::answer_kind;
using detail::question;
using detail::question_kind;

row_kind opening_kind(const question& what) {
  switch (what.kind) {
    case question_kind::sleep:
      return row_kind::timer;
    case question_kind::wait:
      return row_kind::waiting;
    case question_kind::version:
      return row_kind::version;
    case question_kind::child:
      return row_kind::child;
    default:
      return what.step && (what.step->remote || !what.step->replies.empty()) ? row_kind::intent
                                                                             : row_kind::done;
  }
}

std::string described(row_kind kind, const std::string& name) {
  if (kind == row_kind::timer) return "a sleep";
  if (kind == row_kind::waiting) return "a wait for " + name;
  if (kind == row_kind::version) return "the version of " + name;
  if (kind == row_kind::child) return "the child " + name;
  return "the step " + name;
}

bool is_asked_for(const question& what, const journal_row& row) {
  const auto kind = opening_kind(what);
  // A command that could not even be sent is refused without an intent.
  const bool refused_at_once = kind == row_kind::done || (what.step && what.step->command);
  const bool fits = row.kind == kind || (row.kind == row_kind::refused && refused_at_once);
  return fits && row.name == what.name;
}

std::int64_t hash_of(const std::string& input) { return static_cast<std::int64_t>(stable_hash(input)); }

bool has_input(const question& what, const journal_row& row) {
  if (row.input) return *row.input == what.input;
  return !row.input_hash || *row.input_hash == hash_of(what.input);
}

timestamp time_in(const journal_row& row) { return detail::read_stored<timestamp>(*row.result); }

}  // namespace

detail::flow_scope& body_run::scope(std::string path) {
  auto& found = scopes_[path];
  found.host = this;
  found.path = std::move(path);
  return found;
}

void body_run::advance(tick_work& in) {
  tick_ = &in;
  of_.wants_more = false;
  if (!body_) {
    if (!of_.rows.rows().empty()) ++of_.replays;
    auto& root = scope("");
    root.told_at = of_.row.created_at;
    try {
      body_ = of_.what.begin(root, of_.row.input);
    } catch (const std::exception& e) {
      of_.hold("its input cannot be read: " + storable_text(e.what(), error_bytes_max));
      stop();
      return;
    }
    ready_.push_back(body_->frame());
  }
  do {
    resume_ready();
    std::vector<waiting> still = std::exchange(waiting_, {});
    for (auto& one : still) {
      if (!over_ && answer(*one.scope, *one.what))
        ready_.push_back(one.who);
      else
        waiting_.push_back(one);
    }
  } while (!ready_.empty() && !over_);
  if (!over_ && body_->frame().done()) finish();
  tick_ = nullptr;
}

void body_run::resume_ready() {
  while (!ready_.empty() && !over_) {
    const auto next = ready_.front();
    ready_.pop_front();
    const auto began = tick_->clock();
    const auto in_steps = tick_->spent_in_steps();
    next.resume();
    const auto held = tick_->clock() - began - (tick_->spent_in_steps() - in_steps);
    if (held <= of_.body_held) continue;
    of_.body_held = held;
    of_.body_held_after = of_.rows.rows().empty() ? "its beginning" : of_.rows.rows().back().name;
  }
}

void body_run::finish() {
  stop();
  try {
    auto result = body_->result();
    for (const auto& [path, count] : of_.rows.openings()) {
      const auto asked = scope(path).asked;
      if (asked == count) continue;
      const auto& row = *of_.rows.opening(path, asked);
      diverged("the body has ended, and row " + std::to_string(row.n) + " of the journal is " +
               described(row.kind, row.name));
      return;
    }
    of_.result = std::move(result);
    of_.end(saga_status::completed);
  } catch (const std::exception& e) {  // of the body: it may be the program that was just released
    const auto why = "the body has thrown: " + storable_text(e.what(), error_bytes_max);
    if (!of_.retry_later(body_retry, false, failure_class::poison, why)) of_.hold(why);
  } catch (...) {
    of_.hold("the body has thrown something that is not a std::exception");
  }
}

void body_run::diverged(const std::string& why) {
  of_.hold("the body does not ask for what it asked for before: " + why);
  stop();
}

bool body_run::ask(detail::flow_scope& in, question& what) {
  if (over_) return false;
  return answer(in, what);
}

void body_run::wait(detail::flow_scope& in, question& what, std::coroutine_handle<> who) {
  waiting_.push_back({&in, &what, who});
}

bool body_run::answer(detail::flow_scope& in, question& what) {
  if (what.kind == question_kind::version) return version(in, what);
  if (what.row == 0 && !open(in, what)) return false;
  return deliver(in, what);
}

bool body_run::open(detail::flow_scope& in, question& what) {
  if (what.kind == question_kind::undo) {
    if (const auto* next = of_.rows.opening(in.path, in.asked)) {
      diverged("row " + std::to_string(next->n) + " of the journal is " + described(next->kind, next->name) +
               ", and the body asks to be undone");
      return false;
    }
    of_.fail(what.name);
    stop();
    return false;
  }
  if (const auto* next = of_.rows.opening(in.path, in.asked)) return find_opened(in, what, *next);
  return open_new(in, what);
}

bool body_run::find_opened(detail::flow_scope& in, question& what, const journal_row& next) {
  if (!is_asked_for(what, next)) {
    diverged("row " + std::to_string(next.n) + " of the journal is " + described(next.kind, next.name) +
             ", and the body asks for " + described(opening_kind(what), what.name));
    return false;
  }
  if (!has_input(what, next)) of_.input_differs = true;
  what.row = next.n;
  ++in.asked;
  return true;
}

bool body_run::open_new(detail::flow_scope& in, question& what) {
  if (what.kind == question_kind::step) return open_step(in, what);
  if (what.kind == question_kind::child) return open_child(in, what);
  if (what.kind == question_kind::wait && !tick_->listens_to(what.name)) {
    of_.hold("its host does not listen to the event " + what.name + ", which the body waits for");
    stop();
    return false;
  }
  journal_row row{.kind = opening_kind(what), .scope = in.path, .name = what.name};
  if (what.kind == question_kind::wait) row.input = what.input;
  // Absolute, and kept: whoever replays this later has another clock.
  if (what.within) row.result = detail::store(of_.now + *what.within);
  opened(in, what, std::move(row));
  return true;
}

void body_run::opened(detail::flow_scope& in, question& what, journal_row row) {
  what.row = of_.note(std::move(row)).n;
  ++in.asked;
}

bool body_run::open_step(detail::flow_scope& in, question& what) {
  const auto known = of_.step(what.name);
  if (!known) {
    of_.hold("the step " + what.name + " is not among the steps that " + of_.what.type + " was made with");
    stop();
    return false;
  }
  if (!tick_->take_step()) {
    of_.wants_more = true;
    return false;
  }
  if (!known->remote) return do_local(in, what);
  opened(in, what, {.kind = row_kind::intent, .scope = in.path, .name = what.name, .input = what.input});
  of_.calls[{what.row, false}] = {.out = true};
  tick_->calls.push_back(of_.order_of(what.row, call_op::perform));
  return true;
}

bool body_run::do_local(detail::flow_scope& in, question& what) {
  if (of_.retry_at && *of_.retry_at > of_.now) return false;
  const auto step = what.step;
  const auto before = tick_->spent_in_steps();
  const auto ended = tick_->perform([&](transaction& tx) {
    if (!step->command) return step->perform(&tx, nullptr, what.input);
    call via(of_.next_facts(in.path, what.name));
    return step->perform(&tx, &via, what.input);
  });
  if (ended.how == performed::end::aborted) {
    stop();
    return false;
  }
  of_.took.emplace_back(what.name, tick_->spent_in_steps() - before);
  journal_row row{.kind = row_kind::done, .scope = in.path, .name = what.name, .result = ended.result};
  row.input_hash = hash_of(what.input);
  if (step->has_undo) row.input = what.input;
  if (ended.how == performed::end::failed) {
    const bool passing = ended.why != failure_class::permanent;
    if (passing && of_.retry_later(step->retry, false, ended.why, ended.error)) {
      of_.retried.push_back(what.name);
      return false;
    }
    // Nothing is undone any more, so this has to work, and somebody has to help.
    if (!what.may_fail && pivot_passed(of_.rows, of_.lookup())) {
      of_.hold("the step " + what.name + " was refused: " + ended.error);
      stop();
      return false;
    }
    row.kind = row_kind::refused;
    row.result = ended.error;
    row.input.reset();
  } else if (!step->replies.empty()) {  // it is sent, and not answered yet
    row.kind = row_kind::intent;
    row.input = what.input;
    row.result.reset();
    of_.succeeded();
  } else {
    ++of_.steps;
    of_.succeeded();
  }
  opened(in, what, std::move(row));
  return true;
}

bool body_run::open_child(detail::flow_scope& in, question& what) {
  if (!tick_->knows(*what.child)) {
    of_.hold("its host does not know the saga " + what.name + ", which the body wants to start");
    stop();
    return false;
  }
  if (!tick_->take_step()) {
    of_.wants_more = true;
    return false;
  }
  opened(in, what, {.kind = row_kind::child, .scope = in.path, .name = what.name, .input = what.input});
  std::string_view parts = what.input;
  child_start start{of_.row.no, what.row, of_.child_id(what.row), what.child, of_.cause()};
  start.entity = detail::take_stored(parts);
  start.input = detail::take_stored(parts);
  tick_->kin.starts.push_back(std::move(start));
  return true;
}

// Without running ahead a body sees only what is committed.
bool body_run::may_see(const journal_row& row) {
  if (tick_->may_run_ahead() || static_cast<std::size_t>(row.n) <= of_.rows_stored) return true;
  of_.wants_more = true;
  return false;
}

bool body_run::deliver(detail::flow_scope& in, question& what) {
  const auto& row = of_.rows.at(what.row);
  if (row.kind == row_kind::done || row.kind == row_kind::refused) {
    if (!may_see(row)) return false;
    in.told_at = row.at;
    return deliver_answer(what, row);
  }
  if (const auto* answer = of_.rows.answer_of(what.row)) {
    if (!may_see(*answer)) return false;
    in.told_at = answer->at;
    return deliver_answer(what, *answer);
  }
  if (row.kind == row_kind::timer && time_in(row) <= of_.now) {
    in.told_at = of_.now;
    return deliver_answer(what, of_.note({.kind = row_kind::timed_out, .scope = row.scope, .of = what.row}));
  }
  return false;
}

bool body_run::deliver_answer(question& what, const journal_row& answer) {
  what.result = answer.result.value_or("");
  switch (answer.kind) {
    case row_kind::timed_out:
      what.answer = answer_kind::timed_out;
      return true;
    case row_kind::refused:
      what.answer = answer_kind::refused;
      what.outcome_unknown = of_.rows.about(what.row, row_kind::unknown) != nullptr;
      if (what.may_fail) return true;
      of_.fail(what.kind == question_kind::child ? what.result
                                                 : "the step " + what.name + " was refused: " + what.result);
      stop();
      return false;
    default:
      what.answer = answer_kind::done;
      return true;
  }
}

// A saga that was past this place before the body knew of this change goes the old way.
bool body_run::version(detail::flow_scope& in, question& what) {
  what.answer = answer_kind::done;
  const auto* next = of_.rows.opening(in.path, in.asked);
  if (next != nullptr && !is_asked_for(what, *next)) {
    what.result = "0";
    return true;
  }
  if (next == nullptr) {
    opened(in, what,
           {.kind = row_kind::version,
            .scope = in.path,
            .name = what.name,
            .result = std::to_string(what.current)});
  } else {
    what.row = next->n;
    ++in.asked;
  }
  what.result = *of_.rows.at(what.row).result;
  return true;
}

std::optional<timestamp> body_run::next_timer() const {
  std::optional<timestamp> first;
  for (const auto& one : waiting_) {
    if (one.what->row == 0) continue;
    const auto& row = of_.rows.at(one.what->row);
    const bool timed = (row.kind == row_kind::timer || row.kind == row_kind::waiting) && row.result;
    if (!timed || of_.rows.answer_of(row.n) != nullptr) continue;
    const auto at = time_in(row);
    if (!first || at < *first) first = at;
  }
  return first;
}

const question* body_run::asked_by(int row) const {
  for (const auto& one : waiting_)
    if (one.what->row == row) return one.what;
  return nullptr;
}

}  // namespace settle::sagas
