// Sleeping that nothing ends early but a request to stop.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "settle/environment.hpp"

namespace settle::inline v0 {

inline void pause(duration for_long, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, for_long, [] { return false; });
}

}  // namespace settle::inline v0
