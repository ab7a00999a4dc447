// A dead letter as a row of dlq_events, and the marks on its copies that travel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "settle/dead_letter.hpp"

namespace settle::inline v0::dlq {

constexpr std::size_t error_bytes_max = 8192;         // of the last error, in the row
constexpr std::size_t header_error_bytes_max = 1000;  // and in a header

// Reads the columns that the queries read_letters, send_letters and take_letter give, in their order.
dead_letter read_letter(result& rows, std::size_t row);

// The parameters of insert_letter.
parameters letter_parameters(const dead_letter& of);

// The n-th replay of a letter: settlereplayof is "<letter>.<replays>".
struct replay_mark {
  std::int64_t letter = 0;
  std::int64_t replays = 0;
};
std::string to_text(const replay_mark& of);
std::optional<replay_mark> replay_mark_of(const message& m);

// The message as it was published: without what relays and replays have added.
message as_published(const message& delivered);

}  // namespace settle::inline v0::dlq
