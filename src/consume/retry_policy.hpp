// How a consumer's options judge failures.
#pragma once

#include "retry/judge.hpp"
#include "settle/consume.hpp"

namespace settle::consume {

inline retry::policy policy_of(const consumer_options& options) {
  return {{options.retry_wait, options.retry_wait_max}, options.attempts_max, options.transient_max_age};
}

}  // namespace settle::consume
