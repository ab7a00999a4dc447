// How far a share of the outbox has come.
#pragma once

#include <compare>
#include <cstdint>

namespace settle::outbox {

// Everything that tick `tick` shows is done; of what tick `upto` shows beyond it, everything up to number
// `seq`. On SQLite numbers are committed in their order and ticks are not needed: there only `seq` is used.
struct cursor {
  std::int64_t tick = 0;
  std::int64_t upto = 0;  // 0: no window is open
  std::int64_t seq = 0;
  friend constexpr auto operator<=>(const cursor&, const cursor&) = default;
};

constexpr cursor at_number(std::int64_t seq) { return {0, 0, seq}; }

}  // namespace settle::outbox
