// The PostgreSQL driver as the rest of compose uses it. A build without that driver (-DSETTLE_POSTGRES=OFF)
// has without_postgres.cpp instead of postgres.cpp: there every function that needs the driver throws
// invalid_argument with the sentence of missing().
#pragma once

#include <memory>
#include <string>

#include "compose/service_database.hpp"

namespace settle::compose::on_postgres {

// Why this build cannot use a PostgreSQL, and what to do about it; empty: it can.
std::string missing();

void check(const std::string& conninfo);
std::unique_ptr<database> open(const std::string& conninfo, const database_options& with);
// Without prepared statements, which a pooler in transaction mode does not take.
std::unique_ptr<database> open_unprepared(const std::string& conninfo);
bool behind_pooler(const std::string& conninfo);
bool sessions_are_shared(const std::string& conninfo, const database_options& with);
std::string without_secrets(const std::string& conninfo);

}  // namespace settle::compose::on_postgres
