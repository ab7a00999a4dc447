#include <algorithm>
#include <array>
#include <utility>

#include "base/packed.hpp"
#include "http/shared.hpp"
#include "saga/guard_answers.hpp"
#include "settle/error.hpp"
#include "settle/http_step.hpp"
#include "sql/undo_point.hpp"

namespace settle::inline v0::http {
namespace {

constexpr std::array asks_again{401, 407, 408, 409, 423, 425, 429};

bool is_recorded(int status) { return status < 500 && std::ranges::count(asks_again, status) == 0; }

// What stays in the guard: status, content type, body.
std::string packed(const response& made) {
  std::string text;
  pack_number(text, static_cast<std::uint64_t>(made.status));
  pack_text(text, made.headers.find("Content-Type").value_or(""));
  pack_text(text, made.body);
  return text;
}

response unpacked(std::string_view text) {
  unpacker from(text);
  response made;
  made.status = static_cast<int>(from.number());
  const auto type = from.text();
  made.body = from.text();
  if (from.is_broken() || !from.at_end() || made.status < 200 || made.status > 499)
    throw error(errc::decode_failed, "the guard of a saga has an answer that participant() has not written");
  if (!type.empty()) made.headers.add("Content-Type", type);
  made.headers.add("Idempotent-Replayed", "true");
  return made;
}

// A refusal has left nothing behind that an undo could find.
bool has_nothing_to_undo(transaction& tx, const saga_call& call) {
  if (call.op != saga_op::undo) return false;
  const auto answer = sagas::answer_of_action(tx, call);
  return !answer.empty() && unpacked(answer).status >= 400;
}

response answer_of(const saga_entry& entry, const request& asked) {
  switch (entry.how()) {
    case participation::repeated:
      return entry.answer().empty() ? response{204, {}, {}} : unpacked(entry.answer());
    case participation::empty:
      return {204, {}, {}};
    case participation::late:
      return problem(412, "saga_call_late", "the step was undone before it came", asked.path);
    default:
      return problem(412, "saga_call_stale", "somebody with a higher epoch was here", asked.path);
  }
}

response act(database& db, const participant_handler& work, const request& asked, const saga_call& call) {
  auto tx = db.begin(asked.cancelled);
  tx.set_cause(cause_of(asked));
  const auto entry = participate(tx, call);
  if (!entry.fresh() || has_nothing_to_undo(tx, call)) {
    tx.commit("saga.participant");  // whoever was shut out stays so
    return entry.fresh() ? response{204, {}, {}} : answer_of(entry, asked);
  }
  sql::undo_point before(tx);
  auto made = work(asked, call, tx);
  if (const auto fault = fault_of(made); !fault.empty())
    throw error(errc::invalid_argument, "the answer of a participant cannot be sent: " + std::string(fault));
  if (made.status >= 400)
    before.undo();
  else
    before.leave();
  if (!is_recorded(made.status)) return made;  // with the end of the transaction the guard forgets it
  entry.record(tx, packed(made));
  tx.commit("saga.participant");
  return made;
}

}  // namespace

handler participant(database& db, participant_handler work) {
  if (!work) throw error(errc::invalid_argument, "participant() was given no work: the function is empty");
  return [&db, work = std::move(work)](const request& asked) {
    const auto call = saga_call::from(asked);
    if (!call)
      return problem(400, "saga_call_missing",
                     "Saga-Id, Saga-Step, Saga-Op and Saga-Epoch say which step of which saga this is",
                     asked.path);
    return act(db, work, asked, *call);
  };
}

}  // namespace settle::inline v0::http
