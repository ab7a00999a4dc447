// How a worker's options judge failures.
#pragma once

#include "retry/judge.hpp"
#include "settle/webhook.hpp"
#include "webhook/journal.hpp"

namespace settle::hooks {

inline retry::policy policy_of(const worker_options& options) {
  return {{options.retry_wait, options.retry_wait_max}, options.attempts_max, options.transient_max_age};
}

// Without its marks: who judges lives, and one of them may be its own. The others are looked at before a try.
inline retry::tally failures_of(const taken& one) {
  return {.attempts = one.what.attempts, .charged = one.what.attempts - one.passing};
}

}  // namespace settle::hooks
