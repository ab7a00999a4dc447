#include "sql/migrations.hpp"

#include <fmt/format.h>

#include <map>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "queries/migrations_postgres.hpp"
#include "queries/migrations_sqlite.hpp"
#include "queries/sql.hpp"
#include "settle/error.hpp"

namespace settle::sql {

std::string checksum(const migration& of) { return fmt::format("{:016x}", stable_hash(of.text)); }

namespace {

void check_known(database& db, const result& applied, std::span<const migration> all) {
  namespace columns = queries::sql::read_migrations_columns;
  for (std::size_t i = 0; i < applied.size(); ++i) {
    const auto number = applied[i][columns::number].integer();
    const auto& name = applied[i][columns::name].text();
    if (number > static_cast<std::int64_t>(all.size()))
      throw error(errc::schema_newer, fmt::format("{} has migration {} ({}), this build knows up to {}",
                                                  db.name(), number, name, all.size()));
    const auto& ours = all[static_cast<std::size_t>(number - 1)];
    if (applied[i][columns::checksum].text() != checksum(ours))
      throw error(errc::migration_changed,
                  fmt::format("{}: migration {} ({}) was applied with another text than this build has",
                              db.name(), number, name));
  }
}

}  // namespace

int apply_migrations(database& db, std::span<const migration> all) {
  for (std::size_t i = 0; i < all.size(); ++i)
    SETTLE_CHECK(all[i].number == static_cast<int>(i) + 1, "migrations are numbered without gaps");
  if (read_migration_state(db, all).applied == static_cast<int>(all.size())) return 0;
  auto tx = db.begin();
  tx.execute(queries::sql::lock_migrations);
  tx.execute(queries::sql::create_migration_schema);
  tx.execute(queries::sql::create_migration_table);
  const auto applied = tx.execute(queries::sql::read_migrations);
  check_known(db, applied, all);
  int count = 0;
  for (const auto& one : all.subspan(applied.size())) {
    tx.execute_script(one.text);
    tx.execute(queries::sql::record_migration, {one.number, one.name, checksum(one), db.env().now()});
    ++count;
  }
  tx.commit();
  return count;
}

migration_state read_migration_state(database& db, std::span<const migration> all) {
  auto tx = db.read();
  if (tx.execute(queries::sql::migration_table_exists).empty()) return {0, static_cast<int>(all.size())};
  const auto applied = tx.execute(queries::sql::read_migrations);
  check_known(db, applied, all);
  return {static_cast<int>(applied.size()), static_cast<int>(all.size())};
}

std::span<const migration> service_migrations(dialect of) {
  if (of == dialect::postgres) return migrations::postgres;
  return migrations::sqlite;
}

}  // namespace settle::sql

namespace settle::inline v0 {

int migrate(database& db) { return sql::apply_migrations(db, sql::service_migrations(db.speaks())); }

}  // namespace settle
