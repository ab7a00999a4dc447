// The checker for systems without an effect log: outbox against broker against deduplication records.
#pragma once

#include <cstdint>
#include <string>

#include "settle/verify.hpp"

namespace settle {

// How far the relay has come with an event.
enum class outbox_state { pending, published, failed };
outbox_state state_of(const std::string& status);

// Whether the broker's messages can be read.
bool has_broker_log(const verify_input& input);

// Below the number of every event. (SQLite's may begin at 1; those of held events are the events' own.)
constexpr std::int64_t before_all_events = 0;

// Nothing is lost, but somebody has to know.
inline constexpr auto why_failed =
    "the broker rejects it, and the relay has given it up: see `settle outbox failed`";

// Judges what the records can tell: an event that is in no place where it should be is lost. Says in
// not_judged what they cannot tell.
verify_report verify_records(const verify_input& input);

}  // namespace settle
