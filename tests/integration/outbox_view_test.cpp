// The view of the outbox and the checker: what they show is right, and what they read grows with the events
// that they are asked for, not with the ticks and notes of progress that are kept. Counted by the databases
// themselves.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <boost/json.hpp>
#include <thread>

#include "settle/driver/broker.hpp"
#include "settle/sqlite.hpp"
#include "settle/verify.hpp"
#include "support/postgres_outbox_fixture.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

constexpr int events = 4'000;
constexpr int ticks = 1'000;  // and as many notes of progress

constexpr auto newest_twenty = "select * from {} order by id desc limit 20";

struct postgres_outbox_view : test::postgres_outbox {
  // As if a relay had taken a tick after every fourth event, and noted it. The last tick is not noted yet.
  void fill() {
    own->run("delete from settle.outbox_ticks");
    own->run(fmt::format(
        "insert into settle.outbox (slot, xid, seq, topic, event_type, aggregate_id, payload, created_at) "
        "select i % 5, (1000 + i)::text::xid8, i, 't', 'e', (i % 100)::text, '', i from generate_series(1, "
        "{}) i",
        events));
    own->run(fmt::format(
        "insert into settle.outbox_ticks (n, snap, seq_high, xid_high, at) select n, (x || ':' || x || "
        "':')::pg_snapshot, "
        "n * {1}, x::text::xid8, n from (select n, 1001 + n * {1} as x from generate_series(0, {0}) n) t",
        ticks, events / ticks));
    own->run(
        fmt::format("insert into settle.outbox_progress (shares, tick, upto, position, at) "
                    "select 65535, n, 0, 0, n from generate_series(1, {} - 1) n",
                    ticks));
    own->run(fmt::format("select setval('settle.outbox_seq', {})", events));
  }

  std::int64_t blocks_read(const std::string& sql) {
    own->run(sql);  // what a session looks up once is not counted
    const auto plan =
        boost::json::parse(own->run("explain (analyze, buffers, format json) " + sql)).at(0).at("Plan");
    return plan.at("Shared Hit Blocks").as_int64() + plan.at("Shared Read Blocks").as_int64();
  }

  // Rows of ticks and of notes that all sessions before have read; they say so when they end.
  std::int64_t ticks_and_notes_read() {
    while (own->run("select count(*) from pg_stat_activity where datname = current_database() and "
                    "backend_type = 'client backend' and pid <> pg_backend_pid()") != "0")
      std::this_thread::sleep_for(5ms);
    return std::stoll(
        own->run("select sum(seq_tup_read + idx_tup_fetch) from pg_stat_user_tables where relname in "
                 "('outbox_ticks', 'outbox_progress')"));
  }
};

// Proves O2
TEST_F(postgres_outbox_view, shows_when_each_event_was_published_whoever_committed_when) {
  relay first(*db, destination, {.batch_max = 2});
  relay second(*db, destination, {.batch_max = 3});
  first.run_once();
  const auto writer = postgres::open(own->conninfo(), {.env = env});
  for (int round = 0; round < 12; ++round) {
    auto slow = writer->begin();
    for (int i = 0; i < 3; ++i) publish(slow, make(fmt::format("late {}", i), "late"));
    slow.execute("select 1");  // sends them
    for (int i = 0; i < 7; ++i) emit(fmt::format("key {}", i), "x");
    for (int i = 0; i < 5; ++i) {
      time.advance(10ms);
      first.run_once();
      time.advance(10ms);
      second.run_once();
    }
    slow.commit();
  }
  for (int i = 0; i < 40; ++i) {
    time.advance(10ms);
    first.run_once();
    second.run_once();
  }
  ASSERT_EQ(count("settle.outbox_events where status = 'PUBLISHED' and published_at is not null"), 120);
  EXPECT_GT(count("settle.outbox_progress where position > 0"), 0) << "no window was cut";
  // The definition, tried with every note: the first that covers the event.
  EXPECT_EQ(own->run("select count(*) from settle.outbox o join settle.outbox_events e on e.id = o.seq "
                     "where e.published_at is distinct from ("
                     "  select to_timestamp(min(p.at) / 1000000.0) from settle.outbox_progress p "
                     "  join settle.outbox_ticks t on t.n = p.tick "
                     "  left join settle.outbox_ticks u on u.n = p.upto and p.upto > 0 "
                     "  where (p.shares >> (o.lane & 15)) & 1 = 1 and (pg_visible_in_snapshot(o.xid, t.snap) "
                     "    or (o.seq <= p.position and pg_visible_in_snapshot(o.xid, u.snap))))"),
            "0");
}

TEST_F(postgres_outbox_view, does_not_say_when_an_event_was_published_whose_tick_has_gone) {
  fill();
  EXPECT_EQ(
      own->run("select extract(epoch from published_at) * 1000000 from settle.outbox_events where id = 40")
          .substr(0, 3),
      "10.");
  own->run("delete from settle.outbox_ticks where n <= 20");
  EXPECT_EQ(own->run("select status || coalesce(published_at::text, ' unknown') from settle.outbox_events "
                     "where id = 40"),
            "PUBLISHED unknown");
}

// Proves O2
TEST_F(postgres_outbox_view, its_newest_rows_cost_the_same_however_many_ticks_and_notes_there_are) {
  fill();
  EXPECT_LT(blocks_read(fmt::format(newest_twenty, "settle.outbox_events")), 5'000);
  EXPECT_LT(blocks_read("select event_id, status from settle.outbox_events"), 5 * events);
  EXPECT_LT(blocks_read("select published_at from settle.outbox_events"), 100 * events);
}

// Proves V2
TEST_F(postgres_outbox_view, the_checker_looks_at_few_ticks_for_each_event) {
  fill();
  own->run(
      "insert into settle.dedup_horizons (consumer, lane, log, source, place) "
      "select 'warehouse', lane, 't/0', 's', '' from generate_series(0, 255) lane");
  test::temp_dir dir;
  const auto broker = sqlite::open_broker(dir.file("broker.db"), {.env = env});
  broker->subscribe({"warehouse", {"t"}})->leave();
  db.reset();
  const auto before = ticks_and_notes_read();
  const auto fresh = postgres::open(own->conninfo(), {.env = env});
  const auto report = verify({.services = {fresh.get()}, .broker = broker->inspection()});
  EXPECT_EQ(report.committed, events);
  EXPECT_EQ(report.pending, events / ticks);
  EXPECT_TRUE(report.clean());
  db = postgres::open(own->conninfo(), {.env = env});
  // Not from `fresh`, whose session is still there.
  own->run(
      fmt::format("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
                  "and backend_type = 'client backend' and pid <> pg_backend_pid()"));
  EXPECT_LT(ticks_and_notes_read() - before, 50 * events);
}

struct sqlite_outbox_view : ::testing::Test {
  sqlite_outbox_view() {
    auto db = sqlite::open(dir.file("orders.db"));
    migrate(*db);
    auto tx = db->begin();
    for (int i = 1; i <= events; ++i)
      tx.execute(
          "insert into settle_outbox (lane, event_id, topic, event_type, aggregate_id, created_at, payload) "
          "values ($1, $2, 't', 'e', $3, $4, x'')",
          {i % 256, system_ids().next_as<event_id>(), std::to_string(i % 100), i});
    // Two relays, with eight shares each; one is always a little behind.
    for (int i = 1; i <= ticks / 2; ++i) {
      tx.execute("insert into settle_outbox_progress (shares, position, at) values (255, $1, $2)",
                 {i * 8, i * 10});
      tx.execute("insert into settle_outbox_progress (shares, position, at) values (65280, $1, $2)",
                 {i * 8 - 3, i * 10 + 5});
    }
    for (int share = 0; share < 16; ++share)
      tx.execute("insert into settle_shares (scope, share, position) values ('outbox', $1, $2)",
                 {share, share < 8 ? events : events - 3});
    tx.commit();
    sqlite3_open(dir.file("orders.db").c_str(), &raw);
  }
  ~sqlite_outbox_view() override { sqlite3_close(raw); }

  // Steps of SQLite's machine that a statement takes.
  std::int64_t steps(const std::string& sql) {
    sqlite3_stmt* prepared = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(raw, sql.c_str(), -1, &prepared, nullptr), SQLITE_OK) << sqlite3_errmsg(raw);
    while (sqlite3_step(prepared) == SQLITE_ROW) {
    }
    const auto taken = sqlite3_stmt_status(prepared, SQLITE_STMTSTATUS_VM_STEP, 0);
    sqlite3_finalize(prepared);
    return taken;
  }

  test::temp_dir dir;
  sqlite3* raw = nullptr;
};

// Proves O2
TEST_F(sqlite_outbox_view, shows_when_each_event_was_published) {
  const auto db = sqlite::open(dir.file("orders.db"));
  const auto wrong = db->read().execute(
      "select count(*), count(e.published_at) from settle_outbox_events e join settle_outbox o on o.seq = "
      "e.id "
      "where e.published_at is (select min(p.at) from settle_outbox_progress p where p.position >= o.seq and "
      "(p.shares >> (o.lane & 15)) & 1)");
  EXPECT_EQ(wrong[0][0].integer(), events);
  EXPECT_GT(wrong[0][1].integer(), events - 4);
}

// Proves O2
TEST_F(sqlite_outbox_view, its_newest_rows_cost_the_same_however_many_notes_there_are) {
  EXPECT_LT(steps(fmt::format(newest_twenty, "settle_outbox_events")), 5'000);
  EXPECT_LT(steps("select event_id, status from settle_outbox_events"), 100 * events);
  EXPECT_LT(steps("select published_at from settle_outbox_events"), 200 * events);
}

}  // namespace
}  // namespace settle
