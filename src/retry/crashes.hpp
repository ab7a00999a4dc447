// A message over which processes end: whoever begins it notes that in a column before, in a transaction of
// its own, and takes the note back when it has ended. What stays was left by processes that ended with it.
#pragma once

#include <cstdint>
#include <string>

#include "settle/dead_letter.hpp"

namespace settle::retry {

constexpr std::int64_t crashes_max = 3;

// Whether so many processes have ended over it that no other is to try.
constexpr bool has_crashed_enough(std::int64_t crashes) { return crashes >= crashes_max; }

// The failure that a message which is not tried any more is charged with.
inline failed_attempt charge_for_crashes(std::int64_t crashes, timestamp now) {
  return {now, failure_class::poison, std::to_string(crashes) + " processes ended while it ran"};
}

}  // namespace settle::retry
