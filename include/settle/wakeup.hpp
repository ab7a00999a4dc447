// Something to sleep on until there may be work. A wake-up is a hint: it may be spurious, and whoever
// sleeps also polls, so a lost one costs time and never an event.
#pragma once

#include <stop_token>

#include "settle/environment.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

class wakeup {
 public:
  virtual ~wakeup() = default;

  // Returns when something may have changed since the previous call returned, when `at_most` has
  // passed, or when `stop` is requested.
  virtual void wait(duration at_most, std::stop_token stop) = 0;
};

}  // namespace settle

#pragma GCC visibility pop
