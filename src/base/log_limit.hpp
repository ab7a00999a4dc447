// Keeps one kind of log line from flooding the log. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "settle/environment.hpp"

namespace settle::inline v0 {

class log_limit {
 public:
  explicit log_limit(std::int64_t lines_per_second) : most_(lines_per_second) {}

  // Nothing: this line is too many. Else it may be written, and so many were left out before it.
  std::optional<std::int64_t> ask(timestamp now) {
    if (now >= until_ || until_ - now > second) {  // or the clock was set back
      until_ = now + second;
      written_ = 0;
    }
    if (written_ >= most_) {
      ++left_out_;
      return std::nullopt;
    }
    ++written_;
    return std::exchange(left_out_, 0);
  }

 private:
  static constexpr duration second = std::chrono::seconds(1);

  std::int64_t most_;
  std::int64_t written_ = 0;  // in the second that ends at until_
  std::int64_t left_out_ = 0;
  timestamp until_{};
};

}  // namespace settle::inline v0
