// Numbers, times and foreign text as people should see them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "settle/environment.hpp"

namespace settle::cli {

std::string grouped(std::int64_t number);                         // 10,000
std::string counted(std::int64_t number, std::string_view what);  // 1 event, 10,000 events
std::string age(duration of);                                     // 0.4 s, 12 s, 3 min 5 s, 2 h 4 min

// UTF-8 without control characters, except line breaks and tabs.
bool is_printable(std::string_view text);

// Foreign text on one line of a terminal. A stored name must not be able to move the cursor or to
// change the title, so whatever is not printable is written as \xNN, and line breaks as \n.
std::string for_terminal(std::string_view text);

// The beginning of foreign text, on one line, with an ellipsis if that is not all of it.
std::string cut(std::string_view text, std::size_t bytes_max);

// To the second, for tables: 2026-01-31T12:00:00Z.
std::string short_time(timestamp at);

// JSON must be UTF-8. Arguments need not be, so an error that quotes one is made so.
std::string safe_json_text(std::string_view text);

}  // namespace settle::cli
