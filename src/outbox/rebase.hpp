// Lets relays go on after PostgreSQL was restored or a standby took over; see errc::cluster_changed.
#pragma once

#include <cstdint>

#include "settle/database.hpp"

namespace settle::outbox {

// Gives every event that is not published a new number and a new transaction, in their order. Returns how
// many those are. On PostgreSQL only: `settle restore` does what files need.
std::int64_t rebase(transaction& tx);

}  // namespace settle::outbox
