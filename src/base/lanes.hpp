// Keys hash to lanes. The number is stored with every event and is the same for every copy of it, whoever
// computes it: the library, or `settle.lane` in PostgreSQL.
#pragma once

#include <string_view>

#include "base/sha256.hpp"

namespace settle::inline v0 {

constexpr int lane_count = 256;  // fixed for ever

// Events without a key have no order to keep: they spread by their id.
inline int lane_of(std::string_view key, std::string_view event_id) {
  return sha256(key.empty() ? event_id : key)[0];
}

}  // namespace settle::inline v0
