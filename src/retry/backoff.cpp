#include "retry/backoff.hpp"

namespace settle::retry {

// 53 bits: what a double holds.
double fraction(random_source& random) { return static_cast<double>(random.next() >> 11) * 0x1p-53; }

duration jittered(duration wait, double jitter, random_source& random) {
  if (jitter <= 0) return wait;
  const auto most = static_cast<double>(wait.count()) * jitter;
  return wait + duration(static_cast<std::int64_t>(most * fraction(random)));
}

}  // namespace settle::retry
