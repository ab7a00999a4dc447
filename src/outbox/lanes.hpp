// Keys hash to lanes, lanes group into shares. A share is what one relay owns.
#pragma once

#include <string_view>

#include "base/hash.hpp"

namespace settle::outbox {

constexpr int lane_count = 256;  // stored with every row, fixed for ever
constexpr int share_count = 16;  // how many relays can work on one outbox at once
constexpr std::string_view ownership_scope = "outbox";

// Events without a key have no order to keep: they spread by their id.
constexpr int lane_of(std::string_view key, std::string_view event_id) {
  return static_cast<int>(stable_hash(key.empty() ? event_id : key) % lane_count);
}

}  // namespace settle::outbox
