// How long something may take, counted from its beginning.
#pragma once

#include <algorithm>
#include <chrono>
#include <stop_token>

#include "settle/driver/broker.hpp"

namespace settle::inline v0 {

struct limit {
  using clock = std::chrono::steady_clock;

  clock::time_point until;
  std::stop_token stop = {};

  static limit of(const call_limits& limits) { return within(limits.within, limits.stop); }
  static limit within(duration time, std::stop_token stop = {}) {
    constexpr duration longest = std::chrono::hours(24 * 365);  // what is longer would overflow the clock
    return {clock::now() + std::clamp(time, duration::zero(), longest), std::move(stop)};
  }

  limit at_most(duration time) const { return {std::min(until, clock::now() + time), stop}; }
  bool is_over() const { return stop.stop_requested() || clock::now() >= until; }
  std::chrono::milliseconds left() const {  // rounded up, so that waiting for it ends behind it
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()));
  }
};

}  // namespace settle::inline v0
