// What follows from a failure of a journaled event. Pure.
#pragma once

#include "base/retry.hpp"
#include "settle/failure.hpp"
#include "settle/webhook.hpp"

namespace settle::hooks {

struct judgement {
  bool give_up = false;
  duration wait{};
};

// Failures so far, with this one, and those among the earlier ones that were expected to pass.
struct failures_so_far {
  std::int64_t attempts = 1;
  std::int64_t passing = 0;
};

constexpr bool is_passing(failure_class why) {
  return why == failure_class::transient || why == failure_class::outage;
}

// `since` is when the event began to wait. An outage is one of something that this event alone needs.
inline judgement judge(const webhook::worker_options& options, failure_class why, failures_so_far failed,
                       timestamp since, timestamp now) {
  const auto wait = quadratic_wait(failed.attempts, options.retry_wait, options.retry_wait_max);
  if (why == failure_class::permanent) return {true, wait};
  if (is_passing(why)) return {now - since >= options.transient_max_age, wait};
  // What has passed meanwhile has used up no attempt; only the pauses have grown.
  return {failed.attempts - failed.passing >= options.attempts_max, wait};
}

}  // namespace settle::hooks
