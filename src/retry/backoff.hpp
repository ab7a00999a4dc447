// Pauses between attempts: pure arithmetic, so that a test can read a whole schedule.
#pragma once

#include <cstdint>

#include "base/quadratic_wait.hpp"
#include "settle/environment.hpp"

namespace settle::retry {

// The pause after the n-th failure: n² · unit, at most `longest`.
struct backoff {
  duration unit = std::chrono::milliseconds(100);
  duration longest = std::chrono::seconds(30);

  constexpr duration after(std::int64_t failures) const { return quadratic_wait(failures, unit, longest); }

  // Whether a pause that was to last until then is over. One that is longer than any can be was begun before
  // the clock was set back, and must not last until the clock gets there.
  constexpr bool is_over(timestamp until, timestamp now) const {
    return now >= until || until - now > longest;
  }
};

// For what is waited for and has not failed: `first`, then twice as long each time, at most `longest`.
constexpr duration doubling_wait(std::int64_t doublings, duration first, duration longest) {
  auto wait = first;
  for (; doublings > 0 && wait < longest; --doublings) wait = wait > longest / 2 ? longest : 2 * wait;
  return wait < longest ? wait : longest;
}

// From 0 up to, but not including, 1.
double fraction(random_source& random);

// Longer by up to this part of it, so that what has failed together does not come back together. Without
// jitter no random number is used.
duration jittered(duration wait, double jitter, random_source& random);

}  // namespace settle::retry
