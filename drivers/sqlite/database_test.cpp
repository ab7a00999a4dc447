// What is SQLite's own beyond the conformance suite: files, foreign writers, lost transactions.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "settle/sqlite.hpp"
#include "sqlite/handle.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace settle::sqlite {
namespace {

using namespace std::chrono_literals;
using test::code_of;

class sqlite_file : public ::testing::Test {
 protected:
  std::string path() const { return dir_.file("test.db"); }
  std::unique_ptr<database> open(duration busy_timeout = 10s) {
    return sqlite::open(path(), {.busy_timeout = busy_timeout});
  }
  test::temp_dir dir_;
};

TEST_F(sqlite_file, a_path_that_is_no_file_is_refused) {
  for (const auto* path : {"", ":memory:", "file:test.db"})
    EXPECT_EQ(code_of([&] { sqlite::open(path); }), errc::invalid_argument) << path;
}

TEST_F(sqlite_file, a_folder_that_does_not_exist_is_unavailable_and_retryable) {
  EXPECT_EQ(code_of([&] { sqlite::open(dir_.file("missing/test.db")); }), errc::store_unavailable);
}

TEST_F(sqlite_file, a_file_that_is_no_database_is_called_corrupt) {
  std::ofstream(path()) << std::string(8192, 'x');
  EXPECT_EQ(code_of([&] { open()->read().execute("select * from sqlite_master"); }), errc::store_corrupt);
}

TEST_F(sqlite_file, is_named_by_its_path) { EXPECT_EQ(open()->name(), path()); }

TEST_F(sqlite_file, a_writer_that_does_not_know_the_queue_is_waited_for_and_then_busy) {
  auto db = open(50ms);
  const auto foreign = open_handle({path()}, 0);
  run(foreign.get(), "begin immediate");
  EXPECT_EQ(code_of([&] { db->begin(); }), errc::store_busy);
  EXPECT_EQ(code_of([&] { db->read().execute("select 1"); }), std::nullopt);
  run(foreign.get(), "rollback");
  EXPECT_EQ(code_of([&] { db->begin().commit(); }), std::nullopt);
}

TEST_F(sqlite_file, a_transaction_that_sqlite_rolled_back_by_itself_takes_no_more_writes) {
  auto db = open();
  auto tx = db->begin();
  tx.execute("create table notes (id integer primary key on conflict rollback)");
  tx.execute("insert into notes (id) values (1)");
  EXPECT_EQ(code_of([&] { tx.execute("insert into notes (id) values (1)"); }), errc::constraint_violated);
  EXPECT_EQ(code_of([&] { tx.execute("create table alone (id integer)"); }), errc::transaction_lost);
  EXPECT_EQ(code_of([&] { tx.commit(); }), errc::transaction_lost);
  EXPECT_EQ(db->read().execute("select count(*) from sqlite_master")[0][0].integer(), 0);
}

TEST_F(sqlite_file, a_commit_that_a_deferred_constraint_refuses_rolls_back_and_is_decided) {
  auto db = open();
  {
    auto tx = db->begin();
    tx.execute("create table parents (id integer primary key)");
    tx.execute(
        "create table children (parent integer references parents (id) deferrable initially deferred)");
    tx.commit();
  }
  try {
    auto tx = db->begin();
    tx.execute("insert into children (parent) values (404)");
    tx.commit();
    ADD_FAILURE() << "committed";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::constraint_violated);
    EXPECT_FALSE(e.outcome_unknown());
  }
  EXPECT_EQ(db->read().execute("select count(*) from children")[0][0].integer(), 0);
  EXPECT_EQ(code_of([&] { db->begin().commit(); }), std::nullopt) << "and the turn is free again";
}

TEST_F(sqlite_file, positional_and_named_parameters_of_other_styles_are_refused) {
  auto db = open();
  auto tx = db->begin();
  for (const auto* sql :
       {"select ?", "select :name", "select @name", "select $name", "select $0", "select $1x"})
    EXPECT_EQ(code_of([&] { tx.execute(sql, {1}); }), errc::statement_failed) << sql;
}

TEST_F(sqlite_file, a_savepoint_inside_the_transaction_is_the_callers_own_business) {
  auto db = open();
  auto tx = db->begin();
  tx.execute("create table notes (id integer)");
  tx.execute("savepoint a");
  tx.execute("insert into notes (id) values (1)");
  tx.execute("rollback to a");
  tx.execute("release a");
  tx.commit();
  EXPECT_EQ(db->read().execute("select count(*) from notes")[0][0].integer(), 0);
}

}  // namespace
}  // namespace settle::sqlite
