#include "consume/handler_watch.hpp"

#include "base/if_possible.hpp"

namespace settle::consume {

handler_watch::~handler_watch() = default;

// The thread wakes by itself about once per limit, so that fast handlers need not wake it.
void handler_watch::begin(const std::stop_source& stop) {
  const std::scoped_lock lock(mutex_);
  started_ = std::chrono::steady_clock::now();
  current_ = stop;
  late_ = false;
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& over) { work(over); });
  if (asleep_) changed_.notify_one();
}

bool handler_watch::end() {
  const std::scoped_lock lock(mutex_);
  const bool late = late_ || std::chrono::steady_clock::now() > *started_ + limit_;
  started_.reset();
  return late;
}

void handler_watch::work(const std::stop_token& over) {
  std::unique_lock lock(mutex_);
  while (!over.stop_requested()) {
    if (!started_ || late_) {
      asleep_ = true;
      changed_.wait(lock, over, [this] { return started_ && !late_; });
      asleep_ = false;
      continue;
    }
    const auto until = *started_ + limit_;
    changed_.wait_until(lock, over, until, [] { return false; });
    if (over.stop_requested() || !started_ || std::chrono::steady_clock::now() < *started_ + limit_) continue;
    late_ = true;
    auto stop = current_;
    lock.unlock();  // whoever waits is interrupted by this call
    stop.request_stop();
    if_possible(late_call_);
    lock.lock();
  }
}

}  // namespace settle::consume
