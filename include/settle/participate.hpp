// The other side of a remote step: a guard in the participant's own transaction.
//
//   auto tx = db->begin();
//   const auto entry = settle::participate(tx, {saga, "charge", settle::saga_op::act, epoch});
//   if (!entry.fresh()) return answer_of(entry);   // nothing must be done: see participation
//   … work in tx …
//   entry.record(tx, answer);
//   tx.commit();
//
// Of every step of every saga its action happens at most once and its undo at most once; an undo whose action
// never came is skipped, and an action that comes after its undo is refused. So is whoever has a lower epoch
// than somebody before: a process that was replaced and does not know it yet.
//
// Where the call comes over HTTP, http::participant() in settle/http_step.hpp does all of this for a route.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "settle/database.hpp"
#include "settle/saga_step.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

namespace http {
struct request;
}

enum class saga_op { act, undo };

struct saga_call {
  // Of a command: it was sent by a transaction that only the saga's owner could commit.
  static constexpr std::int64_t no_epoch = 0;

  saga_id saga;
  std::string step;  // as call::step() has it
  saga_op op = saga_op::act;
  std::int64_t epoch = no_epoch;

  // As an HTTP step sends it (settle/http_step.hpp); nothing if a header is missing, there twice, or wrong.
  static std::optional<saga_call> from(const http::request& asked);
};

enum class participation {
  fresh,     // do it, and record the answer
  repeated,  // it was done: give the recorded answer again
  empty,     // an undo whose action never came: there is nothing to undo, and the action will be refused
  late,      // an action after its undo: refuse it
  stale,     // somebody with a higher epoch was here: refuse it
};
std::string_view to_string(participation of);

class saga_entry {
 public:
  saga_entry(saga_call what, participation how, std::string answer)
      : call_(std::move(what)), how_(how), answer_(std::move(answer)) {}

  participation how() const { return how_; }
  bool fresh() const { return how_ == participation::fresh; }
  // Of what is repeated: as it was recorded; empty if nothing was.
  const std::string& answer() const { return answer_; }
  // What to give whoever repeats this. In the transaction of the work.
  void record(transaction& tx, std::string_view answer) const;

 private:
  saga_call call_;
  participation how_;
  std::string answer_;
};

// Waits for whoever is at the same saga's same step. The caller commits, also where nothing was to be done.
saga_entry participate(transaction& tx, const saga_call& what);

}  // namespace settle::inline v0

#pragma GCC visibility pop
