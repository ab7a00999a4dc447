// Several writers, readers, processes and waiters on one database.
#include <atomic>
#include <stop_token>
#include <thread>
#include <vector>

#include "conformance/sql_suite.hpp"
#include "settle/error.hpp"
#include "support/child_process.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

// Longer than any wake-up takes on a busy machine, shorter than the wait that it has to end.
constexpr auto in_good_time = 5s;
constexpr duration longest_wait = 10s;

// Waits until there is a note, or until one wait() lasted too long. Spurious wake-ups are allowed.
bool wakes_up_for_a_note(database& db, wakeup& arrivals) {
  const auto started = steady::now();
  while (db.read().execute("select 1 from notes").empty()) {
    arrivals.wait(longest_wait, {});
    if (steady::now() - started > in_good_time) return false;
  }
  return true;
}

TEST_P(sql_conformance, concurrent_writers_all_progress_and_none_is_told_that_the_store_is_busy) {
  constexpr int threads = 8, commits_each = 25;
  auto first = open_with_notes();
  auto second = open();
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> writers;
    for (int t = 0; t < threads; ++t)
      writers.emplace_back([&, t] {
        auto& db = t % 2 == 0 ? *first : *second;
        for (int i = 0; i < commits_each; ++i) try {
            add_note(db, t * commits_each + i);
          } catch (const error& e) {
            ADD_FAILURE() << e.what();
            ++failed;
          }
      });
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(count_notes(*first), threads * commits_each);
}

TEST_P(sql_conformance, writers_of_several_processes_all_progress) {
  constexpr int processes = 4, commits_each = 20;
  open_with_notes();
  std::vector<child_process> writers;
  for (int p = 0; p < processes; ++p)
    writers.emplace_back([&, p] {
      auto db = open();
      for (int i = 0; i < commits_each; ++i) add_note(*db, p * commits_each + i);
      return 0;
    });
  for (auto& writer : writers) EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(count_notes(*open()), processes * commits_each);
}

// Proves G5's foundation: a read and the write that follows it are one step
TEST_P(sql_conformance, read_then_write_in_one_transaction_loses_no_update) {
  constexpr int threads = 4, steps_each = 25;
  auto db = open();
  {
    auto tx = db->begin();
    tx.execute("create table counter (one bigint primary key, n bigint not null)");
    tx.execute("insert into counter (one, n) values (1, 0)");
    tx.commit();
  }
  {
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&] {
        for (int i = 0; i < steps_each; ++i) {
          auto tx = db->begin();
          const auto n = tx.execute("update counter set n = n where one = 1 returning n")[0][0].integer();
          tx.execute("update counter set n = $1 where one = 1", {n + 1});
          tx.commit();
        }
      });
  }
  EXPECT_EQ(db->read().execute("select n from counter")[0][0].integer(), threads * steps_each);
}

TEST_P(sql_conformance, a_reader_neither_waits_for_a_writer_nor_sees_its_open_work) {
  auto db = open_with_notes({.busy_timeout = 200ms});
  add_note(*db, 1);
  auto writer = db->begin();
  writer.execute("insert into notes (id, note) values (2, 'open')");
  auto reader = db->read();
  EXPECT_EQ(reader.execute("select count(*) from notes")[0][0].integer(), 1);
  writer.commit();
  EXPECT_EQ(count_notes(*db), 2);
}

TEST_P(sql_conformance, a_reader_keeps_its_snapshot_and_does_not_hold_up_writers) {
  auto db = open_with_notes({.busy_timeout = 200ms});
  add_note(*db, 1);
  auto reader = db->read();
  ASSERT_EQ(reader.execute("select count(*) from notes")[0][0].integer(), 1);
  for (int i = 2; i <= 20; ++i) add_note(*db, i);
  EXPECT_EQ(reader.execute("select count(*) from notes")[0][0].integer(), 1);
  reader.commit();
  EXPECT_EQ(count_notes(*db), 20);
}

TEST_P(sql_conformance, a_writer_sees_its_own_work_before_the_commit) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.execute("insert into notes (id, note) values (1, 'mine')");
  EXPECT_EQ(tx.execute("select count(*) from notes")[0][0].integer(), 1);
}

// SQLite has one writer at a time; other databases may let both in, and then there is nothing to wait for.
bool is_single_writer(const database& db) { return db.speaks() == dialect::sqlite; }

TEST_P(sql_conformance, a_writer_that_gets_no_turn_in_time_is_told_store_busy) {
  auto db = open_with_notes({.busy_timeout = 50ms});
  if (!is_single_writer(*db)) GTEST_SKIP() << "writers do not exclude each other here";
  auto other = open({.busy_timeout = 50ms});
  {
    auto holder = db->begin();
    EXPECT_EQ(code_of([&] { db->begin(); }), errc::store_busy) << "on the same database";
    EXPECT_EQ(code_of([&] { other->begin(); }), errc::store_busy) << "on another one";
  }
  EXPECT_TRUE(info(errc::store_busy).retryable);
  add_note(*db, 1);
  add_note(*other, 2);
}

TEST_P(sql_conformance, waiting_to_write_ends_when_the_caller_cancels) {
  auto db = open_with_notes();
  if (!is_single_writer(*db)) GTEST_SKIP() << "writers do not exclude each other here";
  auto other = open();
  for (auto* waiting_on : {db.get(), other.get()}) {
    auto holder = db->begin();
    std::stop_source cancel;
    std::optional<errc> outcome;
    std::jthread waiter([&] { outcome = code_of([&] { waiting_on->begin(cancel.get_token()); }); });
    cancel.request_stop();
    waiter.join();
    EXPECT_EQ(outcome, errc::cancelled);
    holder.rollback();
    add_note(*waiting_on, waiting_on == db.get() ? 1 : 2);  // the turn was not lost with the waiter
  }
}

TEST_P(sql_conformance, more_threads_than_connections_all_progress) {
  constexpr int threads = 12, commits_each = 20;
  auto db = open_with_notes({.connections_max = 3});
  {
    std::vector<std::jthread> writers;
    for (int t = 0; t < threads; ++t)
      writers.emplace_back([&, t] {
        for (int i = 0; i < commits_each; ++i)
          EXPECT_EQ(code_of([&] { add_note(*db, t * commits_each + i); }), std::nullopt);
      });
  }
  EXPECT_EQ(count_notes(*db), threads * commits_each);
}

TEST_P(sql_conformance, a_transaction_that_finds_no_free_connection_is_told_store_busy) {
  auto db = open_with_notes({.busy_timeout = 50ms, .connections_max = 1});
  {
    auto holder = db->read();
    EXPECT_EQ(code_of([&] { db->read(); }), errc::store_busy);
    EXPECT_EQ(code_of([&] { db->begin(); }), errc::store_busy);
  }
  add_note(*db, 1);
}

TEST_P(sql_conformance, a_cancelled_transaction_writes_nothing_more_and_cannot_commit) {
  auto db = open_with_notes();
  std::stop_source cancel;
  {
    auto tx = db->begin(cancel.get_token());
    tx.execute("insert into notes (id, note) values (1, 'before')");
    cancel.request_stop();
    EXPECT_EQ(code_of([&] { tx.execute("insert into notes (id, note) values (2, 'after')"); }),
              errc::cancelled);
    EXPECT_EQ(code_of([&] { tx.commit(); }), errc::cancelled);
  }
  EXPECT_EQ(count_notes(*db), 0);
  add_note(*db, 3);  // the connection is as good as new
}

TEST_P(sql_conformance, a_writer_that_dies_leaves_nothing_behind_and_holds_nobody_up) {
  open_with_notes().reset();  // and the driver's threads, whose locks a fork would copy
  pipe_signal inside;
  child_process writer([&] {
    auto own = open();
    auto tx = own->begin();
    tx.execute("insert into notes (id, note) values (1, 'never committed')");
    inside.announce();
    ::pause();
    return 0;
  });
  inside.await();
  EXPECT_EQ(writer.kill(), -SIGKILL);
  const auto db = open();
  add_note(*db, 2);
  EXPECT_EQ(count_notes(*db), 1);
}

TEST_P(sql_conformance, a_watch_wakes_on_a_commit_from_another_connection) {
  if (!GetParam().wakes_others) GTEST_SKIP() << "no session that could listen";
  auto db = open_with_notes();
  auto other = open();
  auto arrivals = db->watch();
  std::jthread committer([&] { add_note(*other, 1); });
  EXPECT_TRUE(wakes_up_for_a_note(*db, *arrivals));
}

TEST_P(sql_conformance, a_watch_wakes_on_a_commit_from_the_same_database_object) {
  auto db = open_with_notes();
  auto arrivals = db->watch();
  std::jthread committer([&] { add_note(*db, 1); });
  EXPECT_TRUE(wakes_up_for_a_note(*db, *arrivals));
}

TEST_P(sql_conformance, a_watch_wakes_on_a_commit_from_another_process) {
  if (!GetParam().wakes_others) GTEST_SKIP() << "no session that could listen";
  pipe_signal watched;
  child_process committer([&] {  // made before a driver has threads here, which a fork would not copy
    watched.await();
    add_note(*open(), 1);
    return 0;
  });
  auto db = open_with_notes();
  auto arrivals = db->watch();
  watched.announce();
  EXPECT_TRUE(wakes_up_for_a_note(*db, *arrivals));
  EXPECT_EQ(committer.wait(), 0);
}

TEST_P(sql_conformance, a_watch_made_before_the_first_commit_of_all_wakes_too) {
  if (!GetParam().wakes_others) GTEST_SKIP() << "no session that could listen";
  auto db = open();
  auto arrivals = db->watch();
  auto tables = [&] { return code_of([&] { db->read().execute("select 1 from notes"); }) == std::nullopt; };
  child_process committer([&] {
    open_with_notes();
    return 0;
  });
  const auto started = steady::now();
  while (!tables() && steady::now() - started < in_good_time) arrivals->wait(longest_wait, {});
  EXPECT_LT(steady::now() - started, in_good_time);
  EXPECT_EQ(committer.wait(), 0);
}

TEST_P(sql_conformance, a_commit_between_two_waits_is_not_missed) {
  auto db = open_with_notes();
  auto arrivals = db->watch();
  arrivals->wait(0s, {});
  add_note(*db, 1);
  const auto started = steady::now();
  arrivals->wait(longest_wait, {});
  EXPECT_LT(steady::now() - started, in_good_time);
}

TEST_P(sql_conformance, every_watch_wakes_on_one_commit) {
  auto db = open_with_notes();
  auto first = db->watch();
  auto second = db->watch();
  add_note(*db, 1);
  const auto started = steady::now();
  first->wait(longest_wait, {});
  second->wait(longest_wait, {});
  EXPECT_LT(steady::now() - started, in_good_time);
}

TEST_P(sql_conformance, a_wait_ends_when_stop_is_requested) {
  auto db = open_with_notes();
  auto arrivals = db->watch();
  std::stop_source stop;
  const auto started = steady::now();
  std::jthread stopper([&] { stop.request_stop(); });
  while (!stop.stop_requested()) arrivals->wait(longest_wait, stop.get_token());
  EXPECT_LT(steady::now() - started, in_good_time);
}

TEST_P(sql_conformance, a_watch_that_was_stopped_once_can_sleep_again) {
  auto db = open_with_notes();
  auto arrivals = db->watch();
  std::stop_source stop;
  std::jthread sleeper([&] { arrivals->wait(longest_wait, stop.get_token()); });
  stop.request_stop();
  sleeper.join();
  // One wake-up may be left over from the stop; a watch that never sleeps again would burn a core.
  arrivals->wait(0s, {});
  constexpr duration short_wait = 50ms;
  const auto started = steady::now();
  for (int i = 0; i < 3; ++i) arrivals->wait(short_wait, {});
  EXPECT_GE(steady::now() - started, short_wait);
}

}  // namespace
}  // namespace settle::test
