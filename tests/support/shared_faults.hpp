// Fault points that many threads pass, for an exploration: one at a time, and of each point only the first
// few passes, because how many there are is up to the threads.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "settle/environment.hpp"

namespace settle::test {

class shared_faults final : public fault_points {
 public:
  explicit shared_faults(fault_points& of, int passes_max = 3) : of_(of), passes_max_(passes_max) {}

  void reached(std::string_view point) override {
    const std::scoped_lock lock(mutex_);
    if (passes_[std::string(point)]++ < passes_max_) of_.reached(point);
  }

 private:
  fault_points& of_;
  int passes_max_;
  std::mutex mutex_;
  std::map<std::string, int> passes_;
};

}  // namespace settle::test
