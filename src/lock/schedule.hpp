// When a lock is due for what: pure arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>

#include "settle/environment.hpp"

namespace settle::locking {

constexpr int renewals_per_ttl = 3;
constexpr duration poll_first = std::chrono::milliseconds(2);

// Counted from before the call that took or renewed it: its end in the store is not earlier.
struct lease_times {
  timestamp renew_at;
  timestamp expires_at;
};
constexpr lease_times lease_from(timestamp asked_at, duration ttl) {
  return {asked_at + ttl / renewals_per_ttl, asked_at + ttl};
}

// As they are now. A lease that ends later than a whole ttl from now has been asked for in the future: the
// clock was set back, nobody knows by how much, and waiting for the old times could take for ever.
constexpr lease_times seen_at(timestamp now, const lease_times& given, duration ttl) {
  return given.expires_at - now > ttl ? lease_times{now, now + ttl} : given;
}

// The pause after the n-th look at a lock that is held (n from 0): doubles up to `longest`, give or take a
// half, so that processes that began to wait together do not look together.
constexpr duration poll_wait(int looks, duration longest, std::uint64_t random) {
  constexpr int doublings_max = 20;
  const auto doubled = poll_first.count() << std::clamp(looks, 0, doublings_max);
  const auto whole = std::max<std::int64_t>(std::min<std::int64_t>(doubled, longest.count()), 1);
  return duration(whole / 2 + static_cast<std::int64_t>(random % static_cast<std::uint64_t>(whole + 1)));
}

}  // namespace settle::locking
