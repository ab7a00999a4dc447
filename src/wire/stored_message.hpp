// A message as columns of a table, for messages that wait in a database.
#pragma once

#include <string>

#include "settle/broker.hpp"
#include "settle/database.hpp"

namespace settle::inline v0 {

// The columns message_id, source, event_type, subject, content_type, event_time, extensions, payload, to be
// appended to a statement's parameters. Topic and key stand elsewhere: tables are found by them.
void append_message(parameters& to, const message& m);

// The same columns of a row, from `first` on.
message read_message(result& rows, std::size_t row, std::size_t first);

}  // namespace settle::inline v0
