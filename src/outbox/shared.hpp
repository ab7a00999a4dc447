// What other rooms ask of the outbox.
#pragma once

#include "settle/broker.hpp"
#include "settle/database.hpp"
#include "settle/publish.hpp"

namespace settle::inline v0 {

// For Settle itself, which sends messages on (dead letters, replays): what was delivered is published from
// here once more. It keeps its id, unless that is no UUID, and has exactly these extensions: names that
// Settle reserves are allowed, and nothing is inherited from the transaction. Any size: it has been accepted
// before.
event_id republish(transaction& tx, const message& what);

}  // namespace settle::inline v0
