// How often something that goes on failing is written: at once, then after a second, after two more, four,
// and so on up to a minute. Who tries again a hundred times has one line for each time that the trouble has
// doubled. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "settle/environment.hpp"

namespace settle::inline v0 {

class growing_log {
 public:
  // It has failed. True: write a line.
  bool fails(timestamp now) {
    if (failures_++ == 0) {
      since_ = now;
      wait_ = wait_min;
    } else if (now < next_ && next_ - now <= wait_) {  // a clock that was set back silences nothing
      return false;
    } else {
      wait_ = std::min(2 * wait_, wait_max);
    }
    next_ = now + wait_;
    return true;
  }

  std::int64_t failures() const { return failures_; }  // in a row

  // It works again. How long it did not; nothing if it did.
  std::optional<duration> works(timestamp now) {
    if (failures_ == 0) return std::nullopt;
    failures_ = 0;
    return std::max(now - since_, duration::zero());
  }

 private:
  static constexpr duration wait_min = std::chrono::seconds(1);
  static constexpr duration wait_max = std::chrono::minutes(1);

  std::int64_t failures_ = 0;
  duration wait_{};
  timestamp since_{};
  timestamp next_{};
};

}  // namespace settle::inline v0
