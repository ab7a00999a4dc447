// The write-ahead log: bounded, never checkpointed behind our back, and nothing lost over it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "settle/sqlite.hpp"
#include "sqlite/checkpointer.hpp"
#include "support/expect_error.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle::sqlite {
namespace {

using namespace std::chrono_literals;
using test::code_of;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class checkpoints : public ::testing::Test {
 protected:
  static constexpr int pages = 50;
  static constexpr std::uintmax_t page_bytes = 4096 + 24;  // with its frame header

  std::unique_ptr<database> open(int checkpoint_pages = pages) {
    environment env;
    env.log = &log_;
    return sqlite::open(path(), {.env = env, .checkpoint_pages = checkpoint_pages});
  }
  std::string path() const { return dir_.file("test.db"); }
  std::uintmax_t log_bytes() const { return std::filesystem::file_size(path() + "-wal"); }

  static void create(database& db) {
    auto tx = db.begin();
    tx.execute("create table notes (id integer primary key, note text not null)");
    tx.commit();
  }
  static void add(database& db, int from, int count) {
    for (int i = from; i < from + count; ++i) {
      auto tx = db.begin();
      tx.execute("insert into notes (id, note) values ($1, $2)", {i, std::string(2000, 'n')});
      tx.commit();
    }
  }
  static std::int64_t count(database& db) {
    return db.read().execute("select count(*) from notes")[0][0].integer();
  }
  static std::string integrity(database& db) {
    return db.read().execute("pragma integrity_check")[0][0].text();
  }

  test::quiet_log log_;
  test::temp_dir dir_;
};

// Proves promise 8: costs are flat
TEST_F(checkpoints, the_log_does_not_grow_without_bound_over_many_commits) {
  auto db = open();
  create(*db);
  add(*db, 0, 300);  // about 600 pages
  EXPECT_LT(log_bytes(), 3 * pages * page_bytes);
  EXPECT_EQ(log_.count("checkpoint_failed"), 0u);
}

TEST_F(checkpoints, everything_is_there_after_checkpoints_and_reopening) {
  {
    auto db = open();
    create(*db);
    add(*db, 0, 200);
  }
  auto again = open();
  EXPECT_EQ(count(*again), 200);
  EXPECT_EQ(integrity(*again), "ok");
}

TEST_F(checkpoints, several_databases_on_one_file_keep_the_log_bounded_and_the_data_whole) {
  auto first = open();
  auto second = open();
  create(*first);
  {
    std::jthread one([&] { add(*first, 0, 150); });
    std::jthread two([&] { add(*second, 1000, 150); });
  }
  EXPECT_LT(log_bytes(), 4 * pages * page_bytes);
  EXPECT_EQ(count(*first), 300);
  EXPECT_EQ(integrity(*second), "ok");
}

TEST_F(checkpoints, a_reader_keeps_its_snapshot_over_checkpoints_and_the_log_stops_growing_after_it) {
  auto db = open();
  create(*db);
  add(*db, 0, 10);
  {
    auto reader = db->read();
    ASSERT_EQ(reader.execute("select count(*) from notes")[0][0].integer(), 10);
    add(*db, 10, 100);
    EXPECT_EQ(reader.execute("select count(*) from notes")[0][0].integer(), 10);
  }
  add(*db, 110, 100);
  const auto settled = log_bytes();
  add(*db, 210, 200);
  EXPECT_LE(log_bytes(), settled);
  EXPECT_EQ(count(*db), 410);
}

TEST_F(checkpoints, closing_takes_no_checkpoint) {
  const std::string marker = "a marker that is in one file only";
  {
    auto db = open(1'000'000);
    create(*db);
    auto tx = db->begin();
    tx.execute("insert into notes (id, note) values (1, $1)", {marker});
    tx.commit();
  }
  EXPECT_NE(contents(path() + "-wal").find(marker), std::string::npos);
  EXPECT_EQ(contents(path()).find(marker), std::string::npos);
  EXPECT_EQ(count(*open()), 1);
}

// SQLite's own automatic checkpoint would let the log begin again after 1,000 pages.
TEST_F(checkpoints, no_commit_takes_one_before_it_is_due) {
  auto db = open(1'000'000);
  create(*db);
  for (int i = 0; i < 100; ++i) {
    auto tx = db->begin();
    for (int row = 0; row < 40; ++row)
      tx.execute("insert into notes (note) values ($1)", {std::string(2000, 'n')});
    tx.commit();
  }
  EXPECT_GT(log_bytes(), 1'500 * page_bytes);
}

TEST_F(checkpoints, pragmas_that_change_durability_or_checkpoint_are_refused_in_any_spelling) {
  auto db = open();
  create(*db);
  for (const std::string pragma :
       {"pragma wal_checkpoint", "pragma wal_checkpoint(truncate)", "pragma main.wal_checkpoint",
        "pragma synchronous = off", "pragma synchronous(0)", "pragma journal_mode = delete",
        "pragma wal_autocheckpoint = 1", "pragma locking_mode = exclusive",
        "/* x */ pragma /* y */ wal_checkpoint"}) {
    auto upper = pragma;
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
    for (const auto& sql : {pragma, upper}) {
      EXPECT_EQ(code_of([&] { db->begin().execute(sql); }), errc::transaction_control) << sql;
      EXPECT_EQ(code_of([&] { db->read().execute(sql); }), errc::transaction_control) << sql;
    }
  }
}

TEST_F(checkpoints, pragmas_that_only_tell_are_allowed_and_show_synced_commits) {
  auto db = open();
  auto tx = db->begin();
  EXPECT_EQ(tx.execute("pragma journal_mode")[0][0].text(), "wal");
  EXPECT_EQ(tx.execute("pragma synchronous")[0][0].integer(), 2) << "FULL";
  EXPECT_EQ(tx.execute("pragma wal_autocheckpoint")[0][0].integer(), 0);
}

TEST(checkpointer_due, waits_for_its_pages) {
  const checkpointer one({"unused.db"}, 1000);
  EXPECT_FALSE(one.due(0));
  EXPECT_FALSE(one.due(999));
  EXPECT_TRUE(one.due(1000));
}

}  // namespace
}  // namespace settle::sqlite
