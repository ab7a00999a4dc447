// Ids derived from what an event is about.
#pragma once

#include <initializer_list>
#include <string_view>

#include "settle/event.hpp"
#include "settle/ids.hpp"

namespace settle::outbox {

// A UUID version 5 of these parts. They are prefixed with their lengths: ("ab", "c") and ("a", "bc") are
// different keys, which a joined text would confuse.
event_id derived_id(std::initializer_list<std::string_view> parts);

// From topic, aggregate type, aggregate id and event type.
event_id natural_id(const event& what);

// From a database's own id and a row of one of its tables. Five parts: never equal to a natural id's four.
event_id row_event_id(std::string_view database, std::string_view table, std::string_view row);

}  // namespace settle::outbox
