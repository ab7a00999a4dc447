// Wakes the host when its database does, and when a call has been answered.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

#include "settle/wakeup.hpp"

namespace settle::sagas {

class bell final : public wakeup {
 public:
  // What it sleeps on. Without it only ring() and time end a wait.
  void listen_to(std::unique_ptr<wakeup> other) { other_ = std::move(other); }
  bool listens() const { return other_ != nullptr; }

  void ring() {
    std::stop_source waiting(std::nostopstate);
    {
      const std::scoped_lock lock(mutex_);
      rung_ = true;
      waiting = waiting_;
    }
    waiting.request_stop();
  }

  void wait(duration at_most, std::stop_token stop) override {
    std::stop_source enough;
    {
      const std::scoped_lock lock(mutex_);
      if (std::exchange(rung_, false)) return;
      waiting_ = enough;
    }
    const std::stop_callback forward(stop, [&] { enough.request_stop(); });
    other_->wait(at_most, enough.get_token());
    const std::scoped_lock lock(mutex_);
    waiting_ = std::stop_source(std::nostopstate);
    rung_ = false;
  }

 private:
  std::unique_ptr<wakeup> other_;
  std::mutex mutex_;
  std::stop_source waiting_{std::nostopstate};
  bool rung_ = false;
};

}  // namespace settle::sagas
