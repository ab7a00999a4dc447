// The transaction in which many sagas go on: their local steps, each with as much care as it needs.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <stdexcept>

#include "saga/events.hpp"
#include "saga/instance.hpp"
#include "settle/database.hpp"

namespace settle::sagas {

enum class care {
  plain,    // a step that fails takes the whole transaction with it
  careful,  // each step can be taken back alone
  single,   // one step of one saga per transaction: something fails when it commits
};

// A step has failed in a transaction that was not careful: all of it has to be done again.
class tick_spoilt : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// How much care the next transaction needs. Pure.
class caution {
 public:
  explicit caution(care at_least) : at_least_(at_least), now_(at_least) {}

  care level() const { return now_; }
  void failed();
  void succeeded();

 private:
  static constexpr int careful_for = 16;  // transactions
  static constexpr int single_for = 64;

  care at_least_;
  care now_;
  int left_ = 0;
};

class tick final : public tick_work {
 public:
  struct limits {
    std::size_t steps_max = 0;  // of one saga; 0: one, and it sees its result when that is committed
    duration time_max{};
    const key_readers* events = nullptr;  // that the host listens to
    std::function<bool(const detail::saga_definition&)> knows = {};
  };
  tick(database& db, owned_transaction& tx, care level, const limits& within);

  void begin_saga() { steps_ = 0; }
  bool is_full() const;

  performed perform(const std::function<std::string(transaction&)>& work) override;
  bool take_step() override;
  bool may_run_ahead() const override { return within_.steps_max > 0; }

  bool listens_to(const std::string& event_type) const override {
    return within_.events != nullptr && within_.events->contains(event_type);
  }

  timestamp clock() const override { return db_.env().now(); }
  duration spent_in_steps() const override { return in_steps_; }
  bool knows(const detail::saga_definition& type) const override { return within_.knows(type); }

  // Why nothing of it may be committed; null if it may.
  const std::exception_ptr& failure() const { return failure_; }

 private:
  performed perform_now(const std::function<std::string(transaction&)>& work);
  std::string run(const std::function<std::string(transaction&)>& work);
  performed perform_alone(const std::function<std::string(transaction&)>& work);
  performed aborted();

  database& db_;
  owned_transaction& tx_;
  care level_;
  limits within_;
  timestamp started_;
  std::size_t steps_ = 0;
  duration in_steps_{};
  bool read_beside_ = false;
  std::exception_ptr failure_;
};

}  // namespace settle::sagas
