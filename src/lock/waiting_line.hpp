// Those in this process who wait for a lock, per name in order of arrival. Only the first asks the store.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>

#include "settle/environment.hpp"

namespace settle::locking {

class waiting_line {
 public:
  using steady = std::chrono::steady_clock;

  // A place in the line, given up at the end of its scope.
  class place {
   public:
    place(waiting_line& in, const std::string& name);
    ~place();
    place(const place&) = delete;
    place& operator=(const place&) = delete;

    // False if it was not the first in time, or was stopped.
    bool await_first(steady::time_point until, const std::stop_token& stop);
    // Returns early when somebody here has released the lock since the last call, or when stopped.
    void doze(duration at_most, const std::stop_token& stop);

   private:
    waiting_line& in_;
    const std::string& name_;
    std::uint64_t number_;
    std::uint64_t seen_ = 0;
  };

  void released(const std::string& name);

 private:
  struct line {
    std::deque<std::uint64_t> numbers;
    std::uint64_t releases = 0;
  };

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, line> lines_;
  std::uint64_t last_number_ = 0;
};

}  // namespace settle::locking
