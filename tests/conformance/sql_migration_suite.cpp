// Migrations: applied exactly once by any number of nodes, and never over a database that differs.
#include <barrier>
#include <thread>
#include <vector>

#include "conformance/sql_suite.hpp"
#include "settle/publish.hpp"
#include "sql/migrations.hpp"
#include "support/child_process.hpp"

namespace settle::test {
namespace {

int known(const database& db) { return static_cast<int>(sql::service_migrations(db.speaks()).size()); }

std::int64_t count_rows(database& db, const std::string& table) {
  return db.read().execute("select count(*) from " + table)[0][0].integer();
}

event some_event() {
  event made;
  made.topic = "orders";
  made.type = "order.placed";
  made.key = "42";
  made.payload = "{}";
  return made;
}

void change(database& db, const std::string& sql) {
  auto tx = db.begin();
  tx.execute(sql);
  tx.commit();
}

TEST_P(sql_conformance, publishing_without_settles_tables_says_schema_missing) {
  auto db = open();
  auto tx = db->begin();
  const auto publish_and_commit = [&] {
    publish(tx, some_event());  // where it is only posted, the commit says so
    tx.commit();
  };
  EXPECT_EQ(code_of(publish_and_commit), errc::schema_missing);
}

TEST_P(sql_conformance, migrate_applies_everything_once_and_then_nothing) {
  auto db = open();
  EXPECT_EQ(migrate(*db), known(*db));
  EXPECT_EQ(migrate(*db), 0);
  auto again = open();
  EXPECT_EQ(migrate(*again), 0);
  EXPECT_EQ(count_rows(*db, GetParam().migrations_table), known(*db));
}

TEST_P(sql_conformance, a_migrated_database_takes_events) {
  auto db = open();
  migrate(*db);
  auto tx = db->begin();
  publish(tx, some_event());
  tx.commit();
  EXPECT_EQ(count_rows(*db, GetParam().outbox_view), 1);
}

TEST_P(sql_conformance, migration_state_tells_applied_from_known) {
  auto db = open();
  const auto all = sql::service_migrations(db->speaks());
  EXPECT_EQ(sql::read_migration_state(*db, all).applied, 0);
  migrate(*db);
  EXPECT_EQ(sql::read_migration_state(*db, all).applied, known(*db));
  EXPECT_EQ(sql::read_migration_state(*db, all).known, known(*db));
}

TEST_P(sql_conformance, threads_that_migrate_at_once_apply_each_migration_exactly_once) {
  constexpr int threads = 6;
  auto shared = open();
  std::atomic<int> applied = 0;
  std::atomic<int> failed = 0;
  std::barrier start(threads);
  {
    std::vector<std::jthread> nodes;
    for (int i = 0; i < threads; ++i)
      nodes.emplace_back([&, i] {
        auto own =
            i % 2 == 0 ? open() : nullptr;  // half of them as other processes would: a database of their own
        start.arrive_and_wait();
        try {
          applied += migrate(own ? *own : *shared);
        } catch (const std::exception& e) {
          ADD_FAILURE() << e.what();
          ++failed;
        }
      });
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(applied, known(*shared));
  EXPECT_EQ(count_rows(*shared, GetParam().migrations_table), known(*shared));
}

TEST_P(sql_conformance, processes_that_open_and_migrate_at_once_apply_each_migration_exactly_once) {
  constexpr int processes = 4;
  pipe_signal start;
  std::vector<child_process> nodes;
  for (int i = 0; i < processes; ++i)
    nodes.emplace_back([&] {
      start.await();
      auto db = open();
      return migrate(*db);
    });
  start.announce(processes);
  int applied = 0;
  for (auto& node : nodes) applied += node.wait();
  auto db = open();
  EXPECT_EQ(applied, known(*db));
  EXPECT_EQ(count_rows(*db, GetParam().migrations_table), known(*db));
}

// Proves O12: an older build does not write into a newer schema
TEST_P(sql_conformance, a_database_from_a_newer_version_is_refused) {
  auto db = open();
  migrate(*db);
  change(*db, "insert into " + GetParam().migrations_table +
                  " (number, name, checksum, applied_at) values (9999, 'future', 'f', 0)");
  EXPECT_EQ(code_of([&] { migrate(*db); }), errc::schema_newer);
}

TEST_P(sql_conformance, a_migration_whose_text_has_changed_is_refused) {
  auto db = open();
  migrate(*db);
  change(*db, "update " + GetParam().migrations_table + " set checksum = 'another' where number = 1");
  EXPECT_EQ(code_of([&] { migrate(*db); }), errc::migration_changed);
}

TEST_P(sql_conformance, a_changed_migration_is_refused_before_a_missing_one_is_applied) {
  auto db = open();
  const auto all = sql::service_migrations(db->speaks());
  ASSERT_EQ(sql::apply_migrations(*db, all.first(1)), 1);
  change(*db, "update " + GetParam().migrations_table + " set checksum = 'another' where number = 1");
  EXPECT_EQ(code_of([&] { migrate(*db); }), errc::migration_changed);
  EXPECT_EQ(count_rows(*db, GetParam().migrations_table), 1);
}

TEST_P(sql_conformance, a_database_that_is_behind_gets_only_what_is_missing) {
  auto db = open();
  const auto all = sql::service_migrations(db->speaks());
  ASSERT_EQ(sql::apply_migrations(*db, all.first(1)), 1);
  EXPECT_EQ(migrate(*db), known(*db) - 1);
  EXPECT_EQ(migrate(*db), 0);
}

TEST_P(sql_conformance, a_migration_that_fails_leaves_none_of_its_run_behind) {
  auto db = open();
  const std::vector<sql::migration> broken{
      {1, "good", "create table good (id bigint); insert into good (id) values (1);"},
      {2, "bad", "create table bad (id bigint); insert into no_such_table (id) values (1);"}};
  EXPECT_EQ(code_of([&] { sql::apply_migrations(*db, broken); }), errc::statement_failed);
  EXPECT_EQ(sql::read_migration_state(*db, broken).applied, 0);
  EXPECT_EQ(code_of([&] { count_rows(*db, "good"); }), errc::statement_failed);
}

}  // namespace
}  // namespace settle::test
