// Whether a store answers and has the tables that this build needs: what /readyz asks of each.
#pragma once

#include <span>
#include <string>

#include "daemon/services/troubles.hpp"
#include "settle/database.hpp"
#include "sql/migrations.hpp"

namespace settle::daemon {

// Why it cannot be counted on, for whoever asks; empty: it can. The whole error goes to the log.
std::string unanswered_by(database& store, std::span<const sql::migration> needed, troubles& known);

// The same for an error that somebody else has met, and for one that is over.
std::string unanswered(const std::string& store, const std::exception& e, const environment& env,
                       troubles& known);
void is_answered(const std::string& store, troubles& known);

}  // namespace settle::daemon
