// The user's own sqlite3* taken into an open transaction.
#include <gtest/gtest.h>

#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"
#include "sqlite/handle.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

using test::code_of;
using test::temp_dir;

// A connection as an application would open it, with nothing of ours.
struct own_connection {
  explicit own_connection(const std::string& path) {
    sqlite3* raw = nullptr;
    EXPECT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
    db.reset(raw);
  }
  int run(const char* sql) const { return sqlite3_exec(db.get(), sql, nullptr, nullptr, nullptr); }
  sqlite::handle db;
};

struct joined : ::testing::Test {
  joined() {
    service = sqlite::open(dir.file("service.db"));
    migrate(*service);
  }
  std::int64_t outbox_rows() {
    return service->read().execute("select count(*) from settle_outbox")[0][0].integer();
  }
  static event thing() { return {.topic = "t", .type = "e", .key = "k", .payload = "p"}; }

  temp_dir dir;
  std::unique_ptr<database> service;
};

// Proves O1
TEST_F(joined, an_event_commits_or_rolls_back_with_the_owners_transaction) {
  own_connection mine(dir.file("service.db"));
  for (const auto* end : {"rollback", "commit"}) {
    ASSERT_EQ(mine.run("begin immediate"), SQLITE_OK);
    {
      sqlite::joined_transaction tx(mine.db.get());
      publish(tx, thing());
    }
    EXPECT_EQ(outbox_rows(), 0) << "not visible before the end";
    ASSERT_EQ(mine.run(end), SQLITE_OK);
  }
  EXPECT_EQ(outbox_rows(), 1);
}

TEST_F(joined, refuses_a_connection_without_a_write_transaction) {
  own_connection mine(dir.file("service.db"));
  EXPECT_EQ(code_of([&] { sqlite::joined_transaction tx(mine.db.get()); }), errc::invalid_argument);
  ASSERT_EQ(mine.run("begin deferred"), SQLITE_OK);
  EXPECT_EQ(code_of([&] { sqlite::joined_transaction tx(mine.db.get()); }), errc::invalid_argument);
}

TEST_F(joined, refuses_a_file_that_is_not_in_wal_mode) {
  own_connection mine(dir.file("other.db"));
  ASSERT_EQ(mine.run("create table t (x)"), SQLITE_OK);
  ASSERT_EQ(mine.run("begin immediate"), SQLITE_OK);
  EXPECT_EQ(code_of([&] { sqlite::joined_transaction tx(mine.db.get()); }), errc::invalid_argument);
}

// A power cut may damage such a file, the outbox in it (sim_log.that_starts_over_…).
// Proves O1
TEST_F(joined, refuses_a_connection_that_never_syncs) {
  own_connection mine(dir.file("service.db"));
  ASSERT_EQ(mine.run("pragma synchronous = off; begin immediate"), SQLITE_OK);
  try {
    sqlite::joined_transaction tx(mine.db.get());
    FAIL() << "joined";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_NE(std::string(e.what()).find("pragma synchronous = normal"), std::string::npos) << e.what();
  }
  for (const auto* enough : {"rollback; pragma synchronous = normal; begin immediate",
                             "rollback; pragma synchronous = full; begin immediate",
                             "rollback; pragma synchronous = extra; begin immediate"}) {
    ASSERT_EQ(mine.run(enough), SQLITE_OK);
    EXPECT_EQ(code_of([&] { sqlite::joined_transaction tx(mine.db.get()); }), std::nullopt) << enough;
  }
}

TEST_F(joined, notices_that_its_owner_has_ended_the_transaction) {
  own_connection mine(dir.file("service.db"));
  ASSERT_EQ(mine.run("begin immediate"), SQLITE_OK);
  sqlite::joined_transaction tx(mine.db.get());
  ASSERT_EQ(mine.run("commit"), SQLITE_OK);
  EXPECT_EQ(code_of([&] { publish(tx, thing()); }), errc::transaction_lost);
  EXPECT_EQ(outbox_rows(), 0);
}

// SQLite before 3.51.3 can corrupt the file when such a checkpoint races a commit.
TEST_F(joined, switches_the_owners_checkpoints_off) {
  own_connection mine(dir.file("service.db"));
  ASSERT_EQ(mine.run("begin immediate"), SQLITE_OK);
  {
    sqlite::joined_transaction tx(mine.db.get());
  }
  ASSERT_EQ(mine.run("commit"), SQLITE_OK);
  int left_on = -1;
  sqlite3_db_config(mine.db.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, -1, &left_on);
  EXPECT_EQ(left_on, 1);
  int pages = -1;
  sqlite3_exec(
      mine.db.get(), "pragma wal_autocheckpoint",
      [](void* out, int, char** columns, char**) {
        *static_cast<int*>(out) = std::atoi(columns[0]);
        return 0;
      },
      &pages, nullptr);
  EXPECT_EQ(pages, 0);
}

}  // namespace
}  // namespace settle
