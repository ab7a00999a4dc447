// How long something may take, and who may end it earlier.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <stop_token>

#include "http/sockets.hpp"
#include "settle/environment.hpp"

namespace settle::inline v0::http {

using steady = std::chrono::steady_clock;

enum class waited { ready, late, stopped };

// Of one request, on its thread.
class time_limit {
 public:
  time_limit(duration time, std::stop_token stop);

  // The same with less time.
  steady::time_point at_most(duration time) const { return std::min(until_, steady::now() + time); }
  steady::time_point until() const { return until_; }
  const std::stop_token& stop() const { return stop_; }

  // For POLLIN, POLLOUT or both.
  waited wait(int descriptor, short events, steady::time_point until) const;

 private:
  struct waker {
    int descriptor;
    void operator()() const noexcept;
  };
  steady::time_point until_;
  std::stop_token stop_;
  descriptor woken_;  // only if somebody can stop it
  std::optional<std::stop_callback<waker>> on_stop_;
};

}  // namespace settle::inline v0::http
