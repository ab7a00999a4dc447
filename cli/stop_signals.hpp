// SIGINT and SIGTERM as stop tokens: the first asks to finish, the second to give up what is under way.
#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace settle::cli {

// Make it before anything that starts threads: they inherit the blocked signals, and only the thread
// in here receives them. Nothing runs in a signal handler.
class stop_signals {
 public:
  stop_signals();
  ~stop_signals();
  stop_signals(const stop_signals&) = delete;
  stop_signals& operator=(const stop_signals&) = delete;

  std::stop_token stop() const { return stop_.get_token(); }
  std::stop_token cancel() const { return cancel_.get_token(); }

 private:
  void wait_for_signals();

  std::stop_source stop_;
  std::stop_source cancel_;
  std::atomic<bool> closing_ = false;
  std::thread thread_;
};

}  // namespace settle::cli
