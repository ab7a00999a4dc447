// At most so many per second, in any second. Pure: it is told the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>

#include "settle/environment.hpp"

namespace settle::inline v0::dlq {

class rate_limiter {
 public:
  // 0: no limit. Below 1 it is one in so many seconds.
  explicit rate_limiter(double per_second) {
    if (per_second <= 0) return;
    constexpr double counted_max = 1e9;
    at_once_max_ = std::max<std::int64_t>(static_cast<std::int64_t>(std::min(per_second, counted_max)), 1);
    const auto seconds = std::min(static_cast<double>(at_once_max_) / per_second, counted_max);
    window_ = std::chrono::ceil<duration>(std::chrono::duration<double>(seconds));
  }

  std::int64_t at_once_max() const { return at_once_max_; }

  // How long until so many more may go; they must not be more than at_once_max().
  duration wait(timestamp now, std::int64_t count) {
    while (!recent_.empty() && recent_.front().first <= now - window_) recent_.pop_front();
    while (!recent_.empty() && recent_.back().first > now) recent_.pop_back();  // the clock was set back
    auto room = at_once_max_;
    for (const auto& [at, sent] : recent_) room -= sent;
    for (const auto& [at, sent] : recent_) {
      if (room >= count) return duration::zero();
      room += sent;
      if (room >= count) return at + window_ - now;
    }
    return duration::zero();
  }

  void note(timestamp at, std::int64_t count) {
    if (window_ > duration::zero()) recent_.emplace_back(at, count);
  }

 private:
  std::int64_t at_once_max_ = std::numeric_limits<std::int64_t>::max();
  duration window_{};
  std::deque<std::pair<timestamp, std::int64_t>> recent_;
};

}  // namespace settle::inline v0::dlq
