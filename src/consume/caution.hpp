// Partitions whose last owner ended without a word: how many of their next messages may have killed it. A
// value: a plan spends its own copy, and what is kept changes when the plan has committed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace settle::consume {

class caution {
 public:
  void begin(std::uint32_t partition, std::size_t messages) { left_[partition] = messages; }

  // Also when the last of them was looked after: until it ends.
  bool lasts(std::uint32_t partition) const { return left_.contains(partition); }

  // One message of the partition is looked after. False: none of it needs that.
  bool spend(std::uint32_t partition) {
    const auto left = left_.find(partition);
    if (left == left_.end() || left->second == 0) return false;
    --left->second;
    return true;
  }

  void end(std::uint32_t partition) { left_.erase(partition); }
  void end_all() { left_.clear(); }

 private:
  std::map<std::uint32_t, std::size_t> left_;
};

}  // namespace settle::consume
