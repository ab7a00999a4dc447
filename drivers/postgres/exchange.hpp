// One round trip: what is queued goes to the server, its answers come back, and somebody judges them.
#pragma once

#include <string_view>

#include "postgres/pipeline.hpp"
#include "settle/environment.hpp"

namespace settle::inline v0::postgres {

// How a round trip went. `cause` says why the server was asked to cancel, if it was; `how` how it then ended.
struct outcome {
  ending how = ending::complete;
  ending cause = ending::complete;
};

// How long the server has for an answer after it was asked to cancel, and the request for its own way.
inline constexpr duration cancel_grace = std::chrono::seconds(1);

// Sends and collects. When the limit is reached it asks the server to cancel and gives it a little time: a
// server that answers keeps the connection usable. Unless `how` is complete, the connection is not.
outcome round_trip(PGconn* conn, pipeline& queued, const limit& within);

// Throws the error of the first step that failed, or of the line.
void check_statements(const outcome& of, const pipeline& done, std::string_view database);

// The same where the last step is the COMMIT. Returns only if the server said COMMIT. The error says
// outcome_unknown() unless it is certain that the server did not commit.
void check_commit(const outcome& of, const pipeline& done, std::string_view database);

// The same for an exchange of one statement without BEGIN and COMMIT, a transaction of its own.
void check_alone(const outcome& of, const pipeline& done, std::string_view database);

// After either of them, where something was written. A COMMIT that is cancelled while it waits for a
// synchronous standby succeeds, with a warning: it would be lost with this server. So one that was asked to
// cancel has an outcome_unknown().
void check_replicated(const outcome& of, const pipeline& done, std::string_view database);

}  // namespace settle::inline v0::postgres
