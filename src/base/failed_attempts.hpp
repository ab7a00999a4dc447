// Failed attempts as they are stored: a JSON array of {"at": microseconds, "class": "…", "error": "…"}.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "settle/dead_letter.hpp"

namespace settle::inline v0 {

// Of a message that fails often only the last ones are kept, and of each error the beginning.
constexpr std::size_t attempts_kept_max = 100;
constexpr std::size_t attempt_error_bytes_max = 1000;

std::string to_json(const std::vector<failed_attempt>& history);

// What is not as to_json writes it is left out: a history must never be the reason that a message waits.
std::vector<failed_attempt> failed_attempts_from_json(std::string_view text);

}  // namespace settle::inline v0
