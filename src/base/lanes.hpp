// Keys hash to lanes. The number is stored with every event and is the same for every copy of it.
#pragma once

#include <string_view>

#include "base/hash.hpp"

namespace settle::inline v0 {

constexpr int lane_count = 256;  // fixed for ever

// Events without a key have no order to keep: they spread by their id.
constexpr int lane_of(std::string_view key, std::string_view event_id) {
  return static_cast<int>(stable_hash(key.empty() ? event_id : key) % lane_count);
}

}  // namespace settle::inline v0
