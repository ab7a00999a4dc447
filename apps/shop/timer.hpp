// Something to sleep on for loops that go by the clock alone.
#pragma once

#include <condition_variable>
#include <mutex>

#include "settle/wakeup.hpp"

namespace shop {

class timer final : public settle::wakeup {
 public:
  void wait(settle::duration at_most, std::stop_token stop) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, at_most, [] { return false; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
};

}  // namespace shop
