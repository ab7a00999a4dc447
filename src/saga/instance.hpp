// A saga in memory: its row, its journal, its body if that runs, and the calls that it waits for. What it
// decides is noted here; whoever holds the transaction writes it down, or forgets the whole instance.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
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
  timestamp created_at{};
  std::optional<timestamp> deadline = {};
  std::string input = {};
  std::string last_error = {};
  std::optional<std::int64_t> parent_no = {};
  origin came_with = {};  // the cause of whoever has started it
};

// A saga that another one has started, as its row tells.
struct child_saga {
  saga_status status = saga_status::running;
  bool is_ordered = false;  // somebody wants something of it that its owner has not done yet
  std::string result = {};
  std::string error = {};
};

// What sagas ask for those that they have started, to be written with their journals.
struct child_start {
  std::int64_t parent_no = 0;
  int parent_n = 0;
  saga_id id;
  std::shared_ptr<const detail::saga_definition> what;
  origin cause = {};
  std::string entity = {}, input = {};
};
struct child_undo {
  saga_id id;
  std::string why;
};
struct kin_work {
  std::vector<child_start> starts = {};
  std::vector<child_undo> undos = {};
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
  virtual bool knows(const detail::saga_definition& type) const = 0;

  virtual timestamp clock() const = 0;
  virtual duration spent_in_steps() const = 0;  // since the transaction began

  std::vector<call_order> calls = {};  // to be made after the commit
  kin_work kin = {};                   // to be written before it

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
  const bool has_commands;  // its type has steps that are answered by events
  std::size_t rows_stored = 0;

  timestamp now{};  // of this tick
  saga_status status;
  std::int64_t attempts = 0;
  std::string last_error = {};
  std::optional<std::string> result = {};
  std::optional<timestamp> retry_at = {};                // of a local step, a local undo, or the body
  std::map<std::pair<int, bool>, open_call> calls = {};  // by row, and whether it is the undo
  std::unique_ptr<body_run> body;
  std::map<int, child_saga> children = {};         // that it waits for, by row, as of this tick
  std::set<int> overdue_replies = {};              // rows of commands that nobody has answered in time
  std::optional<timestamp> patient_until = {};     // it waits for events that may still be under way
  bool wants_more = false;                         // it stopped for the sake of others
  bool held_now = false;                           // in this tick
  bool was_ordered = false;                        // by an operator or its parent, in this tick
  bool input_differs = false;                      // somewhere in the body, from what is stored
  std::int64_t steps = 0, undos = 0, replays = 0;  // in this tick

  // What is told of this tick besides its rows: steps that failed and are tried again, how long local ones
  // took, and the longest time for which the body has held the thread at once.
  std::vector<std::string> retried = {};
  std::vector<std::pair<std::string, duration>> took = {};
  duration body_held{};
  std::string body_held_after = {};

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

  saga_id child_id(int n) const;
  // For people: which saga row n has started.
  std::string child_text(int n) const;

  // What its steps' events inherit.
  origin cause() const;
  call_order order_of(int n, call_op op) const;
  // Of a step that is about to be opened there.
  call::facts next_facts(const std::string& scope, const std::string& name) const;
  bool is_calling() const;

  std::optional<timestamp> due_at() const;
};

std::string call_key(saga_id of, const std::string& outside_name, bool undo);

}  // namespace settle::sagas
