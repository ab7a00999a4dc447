// Is there a pooler between us and the server?
#pragma once

#include "settle/postgres.hpp"

namespace settle::inline v0::postgres {

// Connects once. The greeting names a process; behind PgBouncer and its like it is not the one that answers.
// Errors as those of a first transaction.
bool behind_pooler(const std::string& conninfo, const options& opts = {});

}  // namespace settle::inline v0::postgres
