// Times as people and CloudEvents write them: RFC 3339, UTC, microseconds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "settle/environment.hpp"

namespace settle::inline v0 {

std::string to_rfc3339(timestamp at);

// Reads what to_rfc3339 writes, with any number of fraction digits and with any offset from UTC.
std::optional<timestamp> from_rfc3339(std::string_view text);

}  // namespace settle
