// When a consumer waits because something is away that everybody needs, and nobody is to be charged for it:
// what its handlers call, its own database, or its broker.
#pragma once

#include <cstdint>
#include <optional>

#include "consume/reporting.hpp"
#include "consume/work.hpp"
#include "retry/outage.hpp"
#include "settle/consume.hpp"
#include "settle/environment.hpp"
#include "settle/error.hpp"

namespace settle::consume {

class pauses {
 public:
  pauses(const consumer_options& options, const environment& env, reporting& report)
      : env_(env), report_(report), outage_({options.outage_wait, options.outage_wait_max}) {}

  // What handlers need is away. Now and then one message tries whether it is back.
  bool outage_lasts() const { return outage_.lasts(); }
  bool may_try() const { return outage_.may_try(env_.now()); }
  timestamp until() const { return outage_.until(); }

  // The message has failed alone. True: for everybody's sake, so that all wait now.
  bool begin_with(work& one, const failed_attempt& how);

  // Handlers have run, and their transaction has committed.
  void handlers_succeeded();
  timestamp last_success() const { return last_success_; }

  // The consumer's own database or its broker, as a whole round has found. Said once.
  void round_failed(const error& why);
  void round_succeeded();
  bool is_cut_off() const { return cut_off_since_.has_value(); }

 private:
  const environment& env_;
  reporting& report_;
  retry::outage outage_;
  std::int64_t successes_ = 0;  // transactions with handlers that committed
  timestamp last_success_{};    // when the last of them did
  std::optional<timestamp> cut_off_since_;
};

}  // namespace settle::consume
