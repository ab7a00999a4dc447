#include "settle/participate.hpp"

#include "base/text.hpp"
#include "queries/saga.hpp"
#include "saga/guard_answers.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::size_t name_bytes_max = 1000;
enum : int { no_op = 0, act_op = 1, undo_op = 2 };  // as stored

int stored(saga_op of) { return of == saga_op::act ? act_op : undo_op; }

// True: it was not there.
bool add(transaction& tx, const saga_call& what, int op) {
  return tx.execute(queries::saga::add_guard,
                    {what.saga, what.step, op, stored(what.op), what.epoch, tx.env().now()})
             .affected() == 1;
}

struct guard_row {
  int by_op = no_op;
  std::string answer = {};
};

guard_row read(transaction& tx, const saga_call& what, int op) {
  namespace columns = queries::saga::read_guard_columns;
  const auto found = tx.execute(queries::saga::read_guard, {what.saga, what.step, op});
  guard_row row{static_cast<int>(found[0][columns::by_op].integer())};
  if (!found[0][columns::answer].is_null()) row.answer = found[0][columns::answer].bytes();
  return row;
}

saga_entry enter(transaction& tx, const saga_call& what) {
  if (what.epoch != saga_call::no_epoch) {
    const auto raised = tx.execute(queries::saga::raise_guard, {what.saga, what.epoch, tx.env().now()});
    if (raised.affected() == 0) return {what, participation::stale, {}};
  }
  if (what.op == saga_op::act) {
    if (add(tx, what, act_op)) return {what, participation::fresh, {}};
    auto known = read(tx, what, act_op);
    if (known.by_op == undo_op) return {what, participation::late, {}};
    return {what, participation::repeated, std::move(known.answer)};
  }
  // Its own action goes before it: if that was not there, it never will be.
  const bool never_came = add(tx, what, act_op);
  if (!add(tx, what, undo_op)) {
    if (read(tx, what, act_op).by_op == undo_op) return {what, participation::empty, {}};
    return {what, participation::repeated, read(tx, what, undo_op).answer};
  }
  return {what, never_came ? participation::empty : participation::fresh, {}};
}

}  // namespace

std::string_view to_string(participation of) {
  switch (of) {
    case participation::fresh:
      return "fresh";
    case participation::repeated:
      return "repeated";
    case participation::empty:
      return "empty";
    case participation::late:
      return "late";
    case participation::stale:
      return "stale";
  }
  return "unknown";
}

saga_entry participate(transaction& tx, const saga_call& what) {
  check_name(what.step, {"step of a saga", name_bytes_max});
  auto entry = with_fault_points(tx.env(), "saga.participate", [&] { return enter(tx, what); });
  tx.env().counters->add("settle_saga_participations_total", {{"outcome", to_string(entry.how())}});
  return entry;
}

void saga_entry::record(transaction& tx, std::string_view answer) const {
  tx.post(queries::saga::record_guard, {call_.saga, call_.step, stored(call_.op), blob{std::string(answer)}});
}

}  // namespace settle::inline v0

namespace settle::sagas {

std::string answer_of_action(transaction& tx, const saga_call& what) { return read(tx, what, act_op).answer; }

}  // namespace settle::sagas
