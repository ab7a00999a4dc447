// Runs sessions in every interleaving of their steps, as PostgreSQL's own isolation tester does.
//
//   isolation::runner all(database.conninfo());
//   all.add("late").sql("begin; select emit('a', 'late')").sql("commit");
//   all.add("other").sql("select emit('b', 'other')");
//   const auto done = all.explore({.reset = …, .check = …});
//
// An interleaving keeps the order of each session's own steps and starts from a fresh state (`reset`). One
// step runs at a time, unless it waits for a lock: then the others go on, and it is collected when it gets
// the lock. If it is the turn of a session that still waits, that order cannot happen: it is counted as
// impossible and left, with all others that begin like it. When all steps are done, `check` says what is
// wrong; an empty text means nothing.
//
// The first interleaving that fails ends the exploration, and is described step by step. SETTLE_SCHEDULE, the
// names of the sessions in the order of their steps, runs that one alone.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "isolation/session.hpp"

namespace settle::isolation {

struct world {
  std::function<void()> reset;
  std::function<std::string()> check;
};

struct exploration {
  int ran = 0;
  int impossible = 0;
  std::string failure;  // what the first failing one was, how it went, and how to run it alone
};

class runner {
 public:
  explicit runner(const std::string& conninfo);

  session& add(const std::string& name);
  exploration explore(const world& with);

 private:
  using schedule = std::vector<std::size_t>;  // whose turn it is
  struct outcome {
    std::string failure;
    std::size_t impossible_at = 0;  // 1 for the first step; 0: it can happen
  };

  schedule first_schedule() const;
  schedule schedule_of(const std::string& names) const;
  std::string describe(const schedule& order, const std::string& failure) const;

  outcome run(const schedule& order, const world& with);
  bool take_turns(const schedule& order, std::size_t& turn);
  void await(std::size_t who);
  void collect();
  void note_end(std::size_t who);
  void wind_up(bool given_up);
  bool roll_back_prepared() const;
  bool waits_for_a_lock(const session& one) const;
  std::vector<std::string> query(const std::string& sql) const;

  // A step that was started and has not ended.
  struct under_way {
    std::size_t line = 0;  // of the trace
    const step* which = nullptr;
  };

  std::string conninfo_;
  std::unique_ptr<pg_conn, void (*)(pg_conn*)> control_;
  std::vector<std::unique_ptr<session>> sessions_;
  std::vector<under_way> waiting_;  // by session
  std::vector<std::string> trace_;
  std::string failed_step_;
};

}  // namespace settle::isolation
