// Where locks are kept. One call is one atomic step of the store; nothing here waits for a holder.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/doubt.hpp"
#include "settle/lock.hpp"

namespace settle::locking {

// One holding, as every later call names it.
struct holding {
  std::string name;
  fence_token token;
  duration ttl{};
};

struct answer {
  bool taken = false;
  lock_holder holder;  // the caller itself if it was taken
};

class store {
 public:
  virtual ~store() = default;

  virtual const environment& env() const = 0;

  // The same owner may ask again: if its first call took the lock, it has it in the same epoch.
  virtual answer acquire(const std::string& name, const uuid& owner, duration ttl) = 0;

  // For each whether it is still its owner's; those that are have their whole ttl again.
  virtual std::vector<bool> renew(std::span<const holding> all) = 0;

  // False if it is not its owner's any more.
  virtual bool release(const holding& what) = 0;
};

std::unique_ptr<store> make_sql_store(database& db, const lock_service_options& options);
std::unique_ptr<store> make_redis_store(redis::client& in, const lock_service_options& options);

// Repeats a call whose outcome is unknown once: the repetition is the conflicting write that finds out.
template <class Call>
auto resolving(Call&& call) {
  return until_known(2, [&](bool) { return call(); });
}

}  // namespace settle::locking
