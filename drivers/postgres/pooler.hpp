// Is there a pooler between us and the server?
#pragma once

#include "settle/postgres.hpp"

namespace settle::inline v0::postgres {

// Connects once. The greeting names a process; behind PgBouncer and its like it is not the one that answers.
// Errors as those of a first transaction.
bool behind_pooler(const std::string& conninfo, const options& opts = {});

// Does it hand its sessions around, from one transaction to the next (pool_mode = transaction or statement)?
// Then nothing that is left in a session is there for the next statement. Connects once, and behind a pooler
// twice: where each connection has a session of its own, it stays the same one, and nobody else's. Errors as
// above.
bool sessions_are_shared(const std::string& conninfo, const options& opts = {});

}  // namespace settle::inline v0::postgres
