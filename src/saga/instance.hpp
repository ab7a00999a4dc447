// A saga in memory: its row, its journal, its body if that runs, and the calls that it waits for. What it
// decides is noted here; whoever holds the transaction writes it down, or forgets the whole instance.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "saga/calls.hpp"
#include "saga/journal.hpp"
#include "saga/undo_plan.hpp"
#include "settle/saga_flow.hpp"

namespace settle::sagas {

enum class saga_status { running, completed, failed, compensating, compensated, held };
std::string_view to_string(saga_status of);
saga_status status_from(std::string_view text);
constexpr bool has_ended(saga_status of) {
  return of == saga_status::completed || of == saga_status::failed || of == saga_status::compensated;
}

// The row as it was read.
struct stored_saga {
  std::int64_t no = 0;
  saga_id id;
  std::int64_t kind = 0;
  int shard = 0;
  std::string entity = {};
  saga_status status = saga_status::running;
  std::optional<std::string> wanted = {};
  std::int64_t wakes = 0;
  std::int64_t attempts = 0;
  bool calling = false;
  std::optional<timestamp> deadline = {};
  std::string input = {};
  std::string last_error = {};
};

// How a local step or undo ended.
struct performed {
  enum class end { done, failed, aborted };  // aborted: with the whole transaction
  end how = end::done;
  std::string result = {};
  failure_class why{};
  std::string error = {};
};

// What a saga may do in the transaction of a tick.
class tick_work {
 public:
  virtual performed perform(const std::function<std::string(transaction&)>& work) = 0;
  virtual bool take_step() = 0;  // false: enough for this transaction
  virtual bool may_run_ahead() const = 0;
  virtual bool listens_to(const std::string& event_type) const = 0;

  std::vector<call_order> calls = {};  // to be made after the commit

 protected:
  ~tick_work() = default;
};

// A call that was asked for and has no answer in the journal yet.
struct open_call {
  std::int64_t attempts = 0;  // that failed
  std::optional<timestamp> retry_at = {};
  bool out = false;
  bool asks = false;  // the next one is to ask what became of it
};

class body_run;

class instance {
 public:
  instance(stored_saga stored, const detail::saga_definition& what, journal rows, std::int64_t epoch);
  ~instance();
  instance(const instance&) = delete;
  instance& operator=(const instance&) = delete;

  stored_saga row;
  const detail::saga_definition& what;
  journal rows;
  const std::int64_t epoch;
  std::size_t rows_stored = 0;

  timestamp now{};  // of this tick
  saga_status status;
  std::int64_t attempts = 0;
  std::string last_error = {};
  std::optional<std::string> result = {};
  std::optional<timestamp> retry_at = {};                // of a local step, a local undo, or the body
  std::map<std::pair<int, bool>, open_call> calls = {};  // by row, and whether it is the undo
  std::unique_ptr<body_run> body;
  std::optional<timestamp> patient_until = {};     // it waits for events that may still be under way
  bool wants_more = false;                         // it stopped for the sake of others
  bool held_now = false;                           // in this tick
  bool input_differs = false;                      // somewhere in the body, from what is stored
  std::int64_t steps = 0, undos = 0, replays = 0;  // in this tick

  const journal_row& note(journal_row what);

  // The step of that name; null: it is not among those of the definition.
  detail::step_pointer step(const std::string& name) const;
  step_lookup lookup() const;

  // The body cannot go on: everything is undone, or if that is not possible any more, it is held.
  void fail(const std::string& reason);
  void hold(const std::string& reason, std::optional<int> of = std::nullopt);
  void end(saga_status how);

  // One more failure of what it is at. False: there are no attempts left.
  bool retry_later(const step_retry& by, bool undo, failure_class why, const std::string& error);
  void succeeded();

  call_order order_of(int n, call_op op) const;
  bool is_calling() const;

  std::optional<timestamp> due_at() const;
};

std::string call_key(saga_id of, const std::string& outside_name, bool undo);

}  // namespace settle::sagas
