// Handlers that fail, as the seed wants it. What they remember is outside of every database: a rollback does
// not undo it, and a crash does not forget it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "settle/environment.hpp"

namespace settle::sim {

class moody_handlers {
 public:
  explicit moody_handlers(std::uint64_t seed) : seed_(seed) {}

  // Under every third seed they are. Under the others they never fail by themselves.
  bool moody() const { return seed_ % 3 == 2; }
  bool block_keys() const { return moody() && seed_ % 2 == 0; }

  // In a handler, after its effects. Throws if it does not work this time.
  void run(const std::string& group, const std::string& order, timestamp now);

  // Something that all of them need is away.
  void close_until(timestamp when) { closed_until_ = when; }
  // From now on they work.
  void heal() { healed_ = true; }

 private:
  std::uint64_t seed_;
  timestamp closed_until_{};
  bool healed_ = false;
  std::map<std::string, std::uint64_t> failures_;
};

// How the error begins when something that all of them need is away.
inline constexpr const char* closed = "closed";

}  // namespace settle::sim
