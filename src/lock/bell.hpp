// Something to sleep on until somebody rings.
#pragma once

#include <condition_variable>
#include <mutex>

#include "settle/wakeup.hpp"

namespace settle::locking {

class bell final : public wakeup {
 public:
  void ring() {
    const std::scoped_lock lock(mutex_);
    ringing_ = true;
    rung_.notify_one();
  }

  void wait(duration at_most, std::stop_token stop) override {
    std::unique_lock lock(mutex_);
    rung_.wait_for(lock, stop, at_most, [&] { return ringing_; });
    ringing_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any rung_;
  bool ringing_ = false;
};

}  // namespace settle::locking
