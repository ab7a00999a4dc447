// What has committed and is not acknowledged yet. Pure: time is passed in.
//
// Under load several batches are acknowledged at once. Until then a crash only means that they are delivered
// again and skipped.
#pragma once

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "consume/plan.hpp"
#include "settle/driver/broker.hpp"

namespace settle::consume {

class unacknowledged {
 public:
  static constexpr std::size_t batches_max = 16;
  static constexpr duration longest = std::chrono::milliseconds(200);  // for slow handlers

  explicit unacknowledged(std::size_t batch_max) : many_(batches_max * batch_max) {}

  void add(batch done, timestamp now) {
    if (tags_.empty()) since_ = now;
    for (const auto* one : done) tags_.push_back(one->content.tag);
  }

  bool empty() const { return tags_.empty(); }
  // Whether there is so much, or so old, that it is acknowledged although there is other work.
  bool is_time(timestamp now) const { return tags_.size() >= many_ || now - since_ >= longest; }

  std::vector<delivery_tag> take() { return std::exchange(tags_, {}); }

 private:
  std::size_t many_;
  std::vector<delivery_tag> tags_;
  timestamp since_{};  // of the first of them
};

}  // namespace settle::consume
