// Places where the bug zoo (base/zoo.hpp) breaks what it must not: in the real library each of them does the
// right thing and nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "kafka/client.hpp"
#include "kafka/cluster.hpp"
#include "kafka/membership.hpp"
#include "settle/driver/broker.hpp"

namespace settle::inline v0::kafka {

// What is taken from the library's own settings of a consumer: nothing. Offsets are committed by us.
client::settings habits_of_the_library();

// Where a group begins that has no place in a log yet.
std::int64_t first_offset(const extent& of);

// What was handed out is not done, and stays uncommitted.
void was_handed_out(membership& by, const place& from, std::int64_t offset, const std::string& mark);

// A tag of a session that has ended means nothing: its partition may be somebody else's.
void acknowledged_too_late(membership& by, const place& from, std::int64_t offset);

}  // namespace settle::inline v0::kafka
