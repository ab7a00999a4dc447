// What follows from a failure of a journaled event. Pure.
#pragma once

#include "base/retry.hpp"
#include "settle/failure.hpp"
#include "settle/webhook.hpp"

namespace settle::hooks {

struct judgement {
  bool charged = true;  // an outage is nobody's fault
  bool give_up = false;
  duration wait{};
};

// `attempts` counts this failure; `since` is when the event began to wait.
inline judgement judge(const webhook::worker_options& options, failure_class why, std::int64_t attempts,
                       timestamp since, timestamp now) {
  const auto wait = quadratic_wait(attempts, options.retry_wait, options.retry_wait_max);
  switch (why) {
    case failure_class::outage:
      return {false, false, options.retry_wait};
    case failure_class::permanent:
      return {true, true, wait};
    case failure_class::transient:
      return {true, now - since >= options.transient_max_age, wait};
    case failure_class::poison:
      break;
  }
  return {true, attempts >= options.attempts_max, wait};
}

}  // namespace settle::hooks
