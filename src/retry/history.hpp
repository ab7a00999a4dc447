// Failed attempts as they are stored, for people to read: a JSON array of {"at": microseconds, "class": "…",
// "error": "…"}. How often a message has failed is counted in columns (judge.hpp): a history forgets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "settle/dead_letter.hpp"

namespace settle::retry {

// Of a message that fails often only the last ones are kept, and of each error the beginning.
constexpr std::size_t attempts_kept_max = 100;
constexpr std::size_t attempt_error_bytes_max = 1000;

std::string history_text(const std::vector<failed_attempt>& history);

// What is not as history_text writes it is left out: a history must never be the reason that a message waits.
std::vector<failed_attempt> read_history(std::string_view text);

}  // namespace settle::retry
