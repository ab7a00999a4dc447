// Ids derived from what an event is about.
#pragma once

#include <string_view>

#include "settle/event.hpp"
#include "settle/ids.hpp"

namespace settle::outbox {

// From topic, aggregate type, aggregate id and event type.
event_id natural_id(const event& what);

// From a database's own id and a row of one of its tables. Five parts: never equal to a natural id's four.
event_id row_event_id(std::string_view database, std::string_view table, std::string_view row);

}  // namespace settle::outbox
