#include <algorithm>
#include <utility>

#include "queries/saga.hpp"
#include "saga/commands.hpp"
#include "saga/engine.hpp"
#include "saga/progress.hpp"
#include "saga/seams.hpp"
#include "saga/store.hpp"
#include "settle/driver/database.hpp"
#include "settle/error.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::size_t in_memory_max = 10'000;
constexpr duration kept_for = std::chrono::seconds(1);  // a body that waits longer leaves memory

}  // namespace

saga_host::engine::round saga_host::engine::collect() {
  round next;
  take_answers(next);
  look(next);
  return next;
}

// An answer that was given under another epoch came to nobody: the saga was looked at since.
void saga_host::engine::take_answers(round& into) {
  auto fresh = calls_.take_answers();
  std::ranges::move(fresh, std::back_inserter(answers_));
  for (const auto& one : answers_) into.answers[one.no].push_back(one);
}

void saga_host::engine::look(round& into) {
  auto look = db_.read();
  const auto now = env().now();
  const auto at_most = caution_.level() == sagas::care::single ? 1 : options_.batch_max;
  std::vector<std::int64_t> answered;
  for (const auto& [no, all] : into.answers) {
    if (answered.size() >= at_most) break;
    const auto known = in_memory_.find(no);
    if (known == in_memory_.end())
      answered.push_back(no);
    else
      into.sagas[no] = known->second.get();
  }
  take_up(into, look, sagas::read_sagas(look, answered));
  for (const auto no : answered) {
    if (into.sagas.contains(no)) continue;
    into.answers.erase(no);  // of a saga that is not ours any more
    std::erase_if(answers_, [&](const auto& one) { return one.no == no; });
  }
  for (const auto& [kind, known] : kinds_) {
    if (known.shards.epochs().empty() || into.sagas.size() >= at_most) continue;
    take_up(into, look, sagas::find_due(look, kind, known.shards.list(), now, at_most - into.sagas.size()));
  }
  std::erase_if(into.answers, [&](const auto& one) { return !into.sagas.contains(one.first); });
  next_due_.reset();
  if (!into.sagas.empty()) return;
  for (const auto& [kind, known] : kinds_) {
    if (known.shards.epochs().empty()) continue;
    const auto due = sagas::next_due(look, kind, known.shards.list());
    if (due && (!next_due_ || *due < *next_due_)) next_due_ = due;
  }
}

// What is in memory is as it was written last; only what others may have asked for is new.
void saga_host::engine::take_up(round& into, transaction& look,
                                const std::vector<sagas::stored_saga>& found) {
  std::vector<std::int64_t> unknown;
  for (const auto& one : found)
    if (!in_memory_.contains(one.no)) unknown.push_back(one.no);
  auto journals = sagas::read_journals(look, unknown);
  for (const auto& one : found) {
    const auto kind = kinds_.find(one.kind);
    if (kind == kinds_.end()) continue;
    const auto epoch = kind->second.shards.epochs().find(one.shard);
    if (epoch == kind->second.shards.epochs().end()) continue;
    auto& known = in_memory_[one.no];
    if (known) {
      known->row.wanted = one.wanted;
      known->row.wakes = one.wakes;
    } else {
      known = std::make_unique<instance>(one, *kind->second.what, std::move(journals[one.no]), epoch->second);
      find_own_calls(*known);
    }
    into.sagas[one.no] = known.get();
  }
}

// It was forgotten while a call was out that this process has made: the answer still comes.
void saga_host::engine::find_own_calls(instance& of) const {
  if (!of.row.calling) return;
  const auto is_coming = [&](int n, sagas::call_op op) {
    return calls_.is_out(of.row.no, n, op, of.epoch) || std::ranges::any_of(answers_, [&](const auto& one) {
             return one.no == of.row.no && one.n == n && one.op == op && one.epoch == of.epoch;
           });
  };
  for (const auto& row : of.rows.rows()) {
    const bool undo = row.kind == sagas::row_kind::undo_intent;
    if (!undo && row.kind != sagas::row_kind::intent) continue;
    const int n = undo ? *row.of : row.n;
    if (of.rows.at(n).kind == sagas::row_kind::child || sagas::is_command(of, row)) continue;
    const bool coming = undo ? is_coming(n, sagas::call_op::undo)
                             : is_coming(n, sagas::call_op::perform) || is_coming(n, sagas::call_op::find);
    if (coming) of.calls[{n, undo}] = {.attempts = of.attempts, .out = true};
  }
}

void saga_host::engine::check_fences(owned_transaction& tx, const round& of) const {
  std::map<std::int64_t, std::set<int>> wanted;
  for (const auto& [no, one] : of.sagas) wanted[one->row.kind].insert(one->row.shard);
  std::vector<statement> fences;
  for (const auto& [kind, in] : wanted) fences.push_back(kinds_.at(kind).shards.fence(in));
  std::vector<repeated> all;
  for (const auto& one : fences) all.push_back({one.text, {&one.values, 1}});
  const auto found = tx.execute_all(all);
  std::size_t next = 0;
  for (const auto& [kind, in] : wanted) kinds_.at(kind).shards.check(in, found[next++]);
  transaction_parts::end(tx);
}

// A transaction that fails for the sake of one step is tried again with more care, and all that its bodies
// have seen in it is forgotten.
void saga_host::engine::run_round(round& of, const std::stop_token& cancel) {
  try {
    commit_round(of, cancel);
    caution_.succeeded();
    return;
  } catch (const error& e) {
    const bool steps_fault = !e.outcome_unknown() && e.code() != errc::ownership_lost &&
                             e.code() != errc::cancelled && class_of(e) != failure_class::outage;
    if (!steps_fault) throw;
    report_.tick_failed(e.what());
    forget(of);
    if (caution_.level() == sagas::care::single && of.sagas.size() == 1) charge(of, e, cancel);
  } catch (const sagas::tick_spoilt& e) {
    report_.tick_failed(e.what());
    forget(of);
  }
  caution_.failed();
}

void saga_host::engine::commit_round(round& of, const std::stop_token& cancel) {
  auto tx = db_.begin(cancel);
  check_fences(tx, of);
  meet(tx, of);
  read_children(tx, of);
  transaction_parts::end(tx);
  sagas::tick now(db_, tx, caution_.level(),
                  {options_.steps_max, options_.batch_time, &keys_, [this](const auto& type) {
                     return kinds_.contains(sagas::kind_number(options_.name, type.type, type.version));
                   }});
  std::vector<instance*> ran;
  for (const auto& [no, one] : of.sagas) {
    if (!ran.empty() && now.is_full()) break;
    now.begin_saga();
    one->now = env().now();
    std::vector<sagas::call_answer> answers;
    if (const auto found = of.answers.find(no); found != of.answers.end())
      std::ranges::copy_if(found->second, std::back_inserter(answers),
                           [&](const auto& a) { return a.epoch == one->epoch; });
    tx.set_cause(one->cause());
    sagas::progress step(*one, now);
    step.run(answers);
    if (now.failure()) std::rethrow_exception(now.failure());
    if (!step.order_refused().empty()) report_.order_refused(*one, step.order_refused());
    ran.push_back(one);
  }
  part(tx, ran);
  write(tx, ran, now.kin);
  committed(ran, std::move(now.calls));
}

void saga_host::engine::write(owned_transaction& tx, std::span<instance* const> ran,
                              const sagas::kin_work& kin) {
  const auto relatives = family_of(ran, kin);
  lock_family(tx, ran, relatives);
  std::vector<parameters> rows, written;
  for (const auto* one : ran) {
    sagas::append_rows(rows, *one);
    written.push_back(sagas::saga_values(*one));
    if (!one->held_now) continue;
    tx.set_cause(one->cause());
    sagas::publish_alert(tx, options_.name, *one);
  }
  std::vector<repeated> last = {{queries::saga::add_row, rows}, {sagas::writing_saga(), written}};
  if (!relatives.starts.empty()) last.push_back({queries::saga::start_child, relatives.starts});
  if (!relatives.undos.empty()) last.push_back({queries::saga::undo_child, relatives.undos});
  if (!relatives.wakes.empty()) last.push_back({queries::saga::wake_saga, relatives.wakes});
  tx.commit_with(last, "saga.tick");
}

// Bodies that wait leave memory; those that wait for an answer, or were interrupted, go on soon.
void saga_host::engine::committed(std::span<instance* const> ran, std::vector<sagas::call_order> calls) {
  for (auto* one : ran) {
    report_.went_on(*one);
    one->rows_stored = one->rows.rows().size();
    one->row.status = one->status;
    std::erase_if(answers_, [&](const auto& a) { return a.no == one->row.no; });
    const auto due = one->due_at();
    const bool soon = one->is_calling() || (due && *due - one->now <= kept_for);
    if (!soon || in_memory_.size() > in_memory_max) in_memory_.erase(one->row.no);
  }
  report_.tick_ended();
  with_fault_points(env(), "saga.send", [&] { calls_.send(std::move(calls)); });
}

void saga_host::engine::forget(const round& of) {
  if (!sagas::frames_end_with_their_transaction()) return;
  for (const auto& [no, one] : of.sagas) in_memory_.erase(no);
}

// It alone cannot commit, whatever its steps say.
void saga_host::engine::charge(const round& of, const error& why, const std::stop_token& cancel) {
  const auto no = of.sagas.begin()->first;
  round again;
  {
    auto look = db_.read();
    const std::int64_t numbers[] = {no};
    take_up(again, look, sagas::read_sagas(look, numbers));
  }
  if (again.sagas.empty()) return;
  auto& one = *again.sagas.begin()->second;
  one.now = env().now();
  auto tx = db_.begin(cancel);
  check_fences(tx, again);
  const bool undoing = one.status == sagas::saga_status::compensating;
  if (!one.retry_later({}, undoing, class_of(why), why.what()))
    one.hold(std::string("its transaction cannot be committed: ") + why.what());
  instance* const ran[] = {&one};
  write(tx, ran, {});
  report_.went_on(one);
  in_memory_.erase(no);
}

}  // namespace settle::inline v0
