// Migrations as a script, for administrators who run DDL themselves.
#pragma once

#include <span>
#include <string>

#include "sql/migrations.hpp"

namespace settle::sql {

// What a database that has the first `applied` migrations lacks, with the rows that say so: afterwards
// apply_migrations() finds nothing to do. For psql or sqlite3, in one transaction; it refuses a database that
// has more or fewer migrations than that. Empty if nothing is missing.
std::string migration_script(dialect of, std::span<const migration> all, int applied);

}  // namespace settle::sql
