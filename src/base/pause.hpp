// Sleeping that nothing ends early but a request to stop. Needs no memory, so that it also works where none
// is left; a condition_variable_any would allocate.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "settle/environment.hpp"

namespace settle::inline v0 {

inline void pause(duration for_long, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable changed;
  const std::stop_callback wake(stop, [&] {
    const std::scoped_lock lock(mutex);
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait_for(lock, for_long, [&] { return stop.stop_requested(); });
}

}  // namespace settle::inline v0
