// Stops handlers that take too long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "settle/environment.hpp"
#include "settle/error.hpp"

namespace settle::consume {

class handler_watch {
 public:
  // `late` is called when a handler takes too long, by another thread: the handler may never return.
  handler_watch(duration limit, std::function<void()> late) : limit_(limit), late_call_(std::move(late)) {}
  ~handler_watch();

  // One transaction with handlers. Its token stops when `cancel` does, or when a handler takes too long.
  class attempt {
   public:
    attempt(handler_watch& home, const std::stop_token& cancel)
        : home_(home), forward_(cancel, [this] { stop_.request_stop(); }) {}

    std::stop_token token() const { return stop_.get_token(); }
    // Not a failure of the handler: it was made to stop.
    bool is_stop(const error& e) const {
      return e.code() == errc::cancelled && stop_.get_token().stop_requested();
    }
    void handler_begins() { home_.begin(stop_); }
    bool handler_ends() { return home_.end(); }  // true: too late

   private:
    handler_watch& home_;
    std::stop_source stop_;
    std::stop_callback<std::function<void()>> forward_;
  };

 private:
  void begin(const std::stop_source& stop);
  bool end();
  void work(const std::stop_token& over);

  duration limit_;
  std::function<void()> late_call_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<std::chrono::steady_clock::time_point> started_;  // none: no handler runs
  std::stop_source current_{std::nostopstate};
  bool late_ = false;
  bool asleep_ = false;  // and has to be woken
  std::jthread thread_;  // from the first handler on
};

}  // namespace settle::consume
