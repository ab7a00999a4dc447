// Which identities are at work in this process. Whoever comes second is told so without a connection: fifty
// clicks must not empty the pool.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "once/key.hpp"
#include "settle/database.hpp"

namespace settle::keys {

class in_flight {
 public:
  enum class entry { first, second, mismatch };

  static in_flight& of_this_process() {
    static in_flight all;
    return all;
  }

  entry enter(const database& db, const std::string& identity, const std::string& fingerprint) {
    const std::scoped_lock lock(mutex_);
    const auto [found, added] = running_.try_emplace({&db, identity}, fingerprint);
    if (added) return entry::first;
    return same_request(found->second, fingerprint) ? entry::second : entry::mismatch;
  }

  void leave(const database& db, const std::string& identity) {
    const std::scoped_lock lock(mutex_);
    running_.erase({&db, identity});
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<const database*, std::string>, std::string> running_;  // with their fingerprints
};

}  // namespace settle::keys
