// Troubles that last, each by its name: they are written to the log less and less often. Any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/growing_log.hpp"

namespace settle::daemon {

class troubles {
 public:
  // It is there, or still is. True: write a line.
  bool is_news(const std::string& trouble, timestamp now) {
    const std::scoped_lock lock(mutex_);
    return known_[trouble].fails(now);
  }
  void is_over(const std::string& trouble) {
    const std::scoped_lock lock(mutex_);
    known_.erase(trouble);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, growing_log> known_;
};

}  // namespace settle::daemon
