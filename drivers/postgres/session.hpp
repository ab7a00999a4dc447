// Making a connection, and asking the server to drop what it is doing.
#pragma once

#include "postgres/handle.hpp"
#include "postgres/poller.hpp"
#include "postgres/settings.hpp"
#include "settle/environment.hpp"

namespace settle::inline v0::postgres {

// A connection in pipeline mode that never blocks. Notices of the server go to the log, which must outlive
// it. Throws store_unavailable, store_busy (no connection free on the server) or cancelled. Only the
// resolution of host names can take longer than the limit.
handle connect(const settings& to, const limit& within, poller& wait, const environment& env);

// Asks the server to cancel what this connection waits for. False if the request was not delivered within
// `at_most`: it may then strike later, so the connection must not be used for anything else. libpq's request
// has no time limit, so a thread of its own makes it.
bool request_cancel(PGconn* conn, duration at_most) noexcept;

// Closes so that nothing which is still in a buffer can reach the server any more.
void close_now(handle& conn) noexcept;

}  // namespace settle::inline v0::postgres
