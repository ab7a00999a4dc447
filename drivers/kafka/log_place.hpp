// Where a message stands in a topic of several logs: by its time, then by its partition. Pure.
//
// Kafka has an order in each partition and none between them. Somebody who looks at a topic wants one, and a
// place of 16 bytes to go on from. A message whose timestamp is earlier than what was read before it came is
// passed over; a consumer group misses none.
#pragma once

#include <compare>
#include <cstdint>

#include "settle/driver/broker.hpp"

namespace settle::inline v0::kafka {

struct log_place {
  std::int64_t time_ms = 0;  // 0 and more
  int partition = 0;
  std::int64_t offset = 0;
  friend auto operator<=>(const log_place&, const log_place&) = default;
};

// Sorts as the places do. Up to 2^48 ms, 2^24 partitions and 2^56 messages each.
log_position position_of(const log_place& of);
log_place place_of(const log_position& of);  // throws invalid_argument if it is none

}  // namespace settle::inline v0::kafka
