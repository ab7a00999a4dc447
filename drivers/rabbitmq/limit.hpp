// How long something may take, counted from its beginning.
#pragma once

#include <algorithm>
#include <chrono>
#include <stop_token>

#include "settle/driver/broker.hpp"

namespace settle::inline v0::rabbitmq {

using steady = std::chrono::steady_clock;

struct limit {
  steady::time_point until;
  std::stop_token stop = {};

  static limit of(const call_limits& limits) { return within(limits.within, limits.stop); }
  static limit within(duration time, std::stop_token stop = {}) {
    constexpr duration longest = std::chrono::hours(24 * 365);  // what is longer would overflow the clock
    return {steady::now() + std::clamp(time, duration::zero(), longest), std::move(stop)};
  }
  limit at_most(duration time) const { return {std::min(until, steady::now() + time), stop}; }
};

}  // namespace settle::inline v0::rabbitmq
