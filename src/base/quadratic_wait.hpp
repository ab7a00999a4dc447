// Pauses that grow with every failure in a row. Pure; src/retry builds on it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "settle/environment.hpp"

namespace settle::inline v0 {

// The pause after the n-th failure: n² · unit, at most `longest`.
constexpr duration quadratic_wait(std::int64_t failures, duration unit, duration longest) {
  constexpr std::int64_t failures_counted_max = 10'000;  // n² stays far from overflow
  const auto n = std::clamp<std::int64_t>(failures, 1, failures_counted_max);
  if (unit.count() > longest.count() / (n * n)) return longest;
  return n * n * unit;
}

}  // namespace settle::inline v0
