#include "sql/migration_script.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <memory>

#include "settle/sqlite.hpp"
#include "support/temp_dir.hpp"

namespace settle::sql {
namespace {

// As `sqlite3 -bail` does: ends at the first failure. True if there was none.
bool run(const std::string& path, const std::string& script) {
  sqlite3* opened = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &opened), SQLITE_OK);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> file(opened, sqlite3_close);
  return sqlite3_exec(file.get(), script.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

const auto all = service_migrations(dialect::sqlite);

// Proves O12
TEST(migration_script, leaves_a_file_that_needs_no_migration) {
  const test::temp_dir dir;
  ASSERT_TRUE(run(dir.file("a.db"), migration_script(dialect::sqlite, all, 0)));
  EXPECT_EQ(migrate(*sqlite::open(dir.file("a.db"))), 0);
}

TEST(migration_script, continues_where_the_file_is) {
  const test::temp_dir dir;
  apply_migrations(*sqlite::open(dir.file("a.db")), all.first(2));
  ASSERT_TRUE(run(dir.file("a.db"), migration_script(dialect::sqlite, all, 2)));
  EXPECT_EQ(migrate(*sqlite::open(dir.file("a.db"))), 0);
}

TEST(migration_script, changes_nothing_in_a_file_that_it_was_not_printed_for) {
  const test::temp_dir dir;
  apply_migrations(*sqlite::open(dir.file("a.db")), all.first(2));
  for (const int wrong : {0, 1, 3, 4})
    EXPECT_FALSE(run(dir.file("a.db"), migration_script(dialect::sqlite, all, wrong))) << wrong;
  EXPECT_EQ(read_migration_state(*sqlite::open(dir.file("a.db")), all).applied, 2);
}

TEST(migration_script, is_empty_when_nothing_is_missing) {
  EXPECT_EQ(migration_script(dialect::sqlite, all, static_cast<int>(all.size())), "");
}

}  // namespace
}  // namespace settle::sql
