// How long handlers take, and how many messages a transaction therefore holds. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "settle/environment.hpp"

namespace settle::consume {

class handler_pace {
 public:
  // The handlers of so many messages took so long.
  void note(duration took, std::int64_t messages) {
    if (messages == 0) return;
    const auto each = static_cast<double>(took.count()) / static_cast<double>(messages);
    each_us_ = each_us_ == 0 ? each : 0.8 * each_us_ + 0.2 * each;
  }

  // How many fit into `within`: at least one, so that slow handlers get on too.
  std::size_t batch_limit(duration within, std::size_t most) const {
    if (each_us_ <= 0) return most;
    const auto fits = static_cast<double>(within.count()) / each_us_;
    return std::clamp<std::size_t>(static_cast<std::size_t>(std::min(fits, 1e6)), 1, most);
  }

 private:
  double each_us_ = 0;  // running average per message
};

}  // namespace settle::consume
