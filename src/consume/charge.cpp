#include "consume/charge.hpp"

#include "base/retry.hpp"

namespace settle::consume {

judgement judge(const consumer_options& options, failure_class why, std::int64_t attempts, timestamp first,
                timestamp now) {
  const auto wait = quadratic_wait(attempts, options.retry_wait, options.retry_wait_max);
  switch (why) {
    case failure_class::permanent:
      return {dead_letter_reason::permanent, {}};
    case failure_class::poison:
      if (attempts >= options.attempts_max) return {dead_letter_reason::exhausted, {}};
      break;
    case failure_class::outage:  // of something that this message alone needs
    case failure_class::transient:
      if (now - first >= options.transient_max_age) return {dead_letter_reason::too_old, {}};
      break;
  }
  return {std::nullopt, wait};
}

}  // namespace settle::consume
