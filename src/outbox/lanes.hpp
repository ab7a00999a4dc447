// Lanes group into shares. A share is what one relay owns.
#pragma once

#include <string_view>

#include "base/lanes.hpp"

namespace settle::outbox {

using settle::lane_count;
using settle::lane_of;

constexpr int share_count = 16;  // how many relays can work on one outbox at once
constexpr std::string_view ownership_scope = "outbox";

}  // namespace settle::outbox
