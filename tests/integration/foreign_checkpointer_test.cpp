// Somebody else's program on our files: it knows neither the queue nor our checkpoints, and takes its own.
//
// SQLite before 3.51.3 can corrupt a file when such a checkpoint races a commit that resets the log, which is
// why Settle's own checkpoints never do (docs/design/sqlite.md). That race is far rarer than what is tested
// here: the log is emptied, shortened and deleted under our connections all the time.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "settle/error.hpp"
#include "support/order_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::order_world;
using test::temp_dir;

// A plain connection as everybody opens one: automatic checkpoints on, and one more when the last one closes.
class plain_connection {
 public:
  explicit plain_connection(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK);
    sqlite3_busy_timeout(db_, 1000);
    run("create table if not exists foreign_notes (id integer primary key, note blob not null)");
  }
  ~plain_connection() { sqlite3_close(db_); }
  plain_connection(const plain_connection&) = delete;
  plain_connection& operator=(const plain_connection&) = delete;

  // 50 pages: after 20 of them an automatic checkpoint is due.
  bool write() { return run("insert into foreign_notes (note) values (zeroblob(200000))"); }
  bool empty_the_log() {
    return sqlite3_wal_checkpoint_v2(db_, "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr) == SQLITE_OK;
  }

 private:
  bool run(const char* sql) { return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK; }
  sqlite3* db_ = nullptr;
};

// What our own services threw, and how often somebody else emptied a log under them.
struct happened {
  std::atomic<int> retryable = 0;
  std::atomic<int> final = 0;
  std::atomic<int> logs_emptied = 0;

  void note(const error& e) {
    ++(e.retryable() ? retryable : final);
    if (!e.retryable()) ADD_FAILURE() << e.what();
  }
};

// Works in sessions, and leaves the checkpoints of every other one to SQLite. It waits for commits of ours in
// between: SQLite's own way to wait for a lock is a sleep, and whoever never pauses starves the others.
void interfere(database& file, const std::stop_token& stop, happened& seen) {
  const auto commits = file.watch();
  for (int session = 0; !stop.stop_requested(); ++session) {
    plain_connection theirs(file.name());
    for (int i = 0; i < 25 && !stop.stop_requested(); ++i) {
      commits->wait(10ms, stop);
      if (theirs.write() && session % 2 == 0 && theirs.empty_the_log()) ++seen.logs_emptied;
    }
  }
}

void take_turns(service& ours, const std::stop_token& stop, happened& seen) {
  while (!stop.stop_requested()) {
    try {
      if (!ours.run_once({})) ours.arrivals().wait(10ms, stop);
    } catch (const error& e) {
      seen.note(e);
    }
  }
}

// The order's own key answers whether an attempt with an unknown end had committed.
void place_until_done(order_world& world, int number, happened& seen) {
  for (bool placed = false; !placed;) {
    try {
      world.place(number);
      placed = true;
    } catch (const error& e) {
      seen.note(e);
      if (!e.retryable()) return;
    }
  }
}

void expect_all_applied_once(order_world& world, int orders) {
  const auto report = world.verify();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.committed, orders);
  EXPECT_EQ(report.applied, orders);
  EXPECT_EQ(report.pending, 0);
  for (auto* file : {&world.orders(), &world.warehouse(), &world.broker_file()})
    EXPECT_EQ(file->read().execute("pragma integrity_check")[0][0].text(), "ok") << file->name();
}

// Proves O1, C1
TEST(foreign_checkpointer, may_empty_the_logs_of_a_running_system) {
  constexpr int per_producer = 250;
  constexpr int orders = 2 * per_producer;
  temp_dir dir;
  order_world world(dir);
  happened seen;
  {
    std::vector<std::jthread> threads;
    for (auto* file : {&world.orders(), &world.warehouse(), &world.broker_file()})
      threads.emplace_back([&, file](const std::stop_token& stop) { interfere(*file, stop, seen); });
    for (service* ours : std::array<service*, 2>{&world.relay(), &world.consumer()})
      threads.emplace_back([&, ours](const std::stop_token& stop) { take_turns(*ours, stop, seen); });
    for (int producer = 0; producer < 2; ++producer)
      threads.emplace_back([&, producer] {
        for (int i = 0; i < per_producer; ++i) place_until_done(world, 2 * i + producer, seen);
      });
    const auto news = world.broker_file().watch();
    while (world.consumer().counts().applied < orders && seen.final == 0) {
      world.time().advance(10ms);  // a relay that was told to pause goes on
      news->wait(10ms, {});
    }
  }
  world.drain();
  expect_all_applied_once(world, orders);
  EXPECT_GT(seen.logs_emptied, 10);
  RecordProperty("retryable_errors", seen.retryable);
}

// The last one to close a file checkpoints all of the log and deletes it. Proves O1, C1
TEST(foreign_checkpointer, may_be_the_last_to_close_and_delete_the_logs) {
  constexpr int rounds = 5;
  constexpr int per_round = 10;
  temp_dir dir;
  for (int round = 0; round < rounds; ++round) {
    {
      order_world world(dir, {.hours_later = round});
      for (int i = 0; i < per_round; ++i) world.place(per_round * round + i);
      for (int i = 0; i < round; ++i) world.relay().run_once();  // ends at another point each time
      if (round % 2 == 1) world.consumer().run_once();
    }
    for (const auto* file : {"orders.db", "warehouse.db", "broker.db"}) {
      EXPECT_TRUE(plain_connection(dir.file(file)).write());
      EXPECT_FALSE(std::filesystem::exists(dir.file(file) + "-wal"));
    }
  }
  order_world world(dir, {.hours_later = rounds});
  world.drain();
  expect_all_applied_once(world, rounds * per_round);
}

}  // namespace
}  // namespace settle
