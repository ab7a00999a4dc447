// Ids derived from what an event is about.
#pragma once

#include "settle/event.hpp"
#include "settle/ids.hpp"

namespace settle::outbox {

// A UUID version 5 of topic, aggregate type, aggregate id and event type. The parts are prefixed with
// their lengths: ("ab", "c") and ("a", "bc") are different keys, which a joined text would confuse.
event_id natural_id(const event& what);

}  // namespace settle::outbox
