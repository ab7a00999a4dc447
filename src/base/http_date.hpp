// Times as HTTP headers write them: "Sun, 06 Nov 1994 08:49:37 GMT".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "settle/environment.hpp"

namespace settle::inline v0 {

// Rounded down to the second.
std::string to_http_date(timestamp at);

// Reads exactly what to_http_date writes: IMF-fixdate. The two older forms are obsolete; nobody may send
// them.
std::optional<timestamp> from_http_date(std::string_view text);

}  // namespace settle::inline v0
