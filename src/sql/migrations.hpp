// Numbered, append-only migrations, applied in one transaction under the database's own lock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "settle/database.hpp"

namespace settle::sql {

struct migration {
  int number;
  std::string_view name;
  std::string_view text;
};

// What the database remembers of a migration's text.
std::string checksum(const migration& of);

// Applies what is missing and returns how many that were. All or nothing; any number of nodes at once.
// Throws schema_newer if the database has migrations that this build does not know, and
// migration_changed if an applied one has another text here.
int apply_migrations(database& db, std::span<const migration> all);

struct migration_state {
  int applied = 0;  // the highest number applied
  int known = 0;    // the highest number of this build
};
migration_state read_migration_state(database& db, std::span<const migration> all);

// The migrations of a service's database in the dialect that it speaks.
std::span<const migration> service_migrations(dialect of);

}  // namespace settle::sql
