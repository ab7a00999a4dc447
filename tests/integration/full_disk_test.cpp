// Files that cannot grow any more, under a running system: it refuses, says why, and goes on when there is
// room again. Each disk fills up in a process of its own.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "support/child_process.hpp"
#include "support/expect_error.hpp"
#include "support/order_world.hpp"
#include "support/small_disk.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::child_process;
using test::code_of;
using test::order_world;
using test::temp_dir;

constexpr int orders_max = 2000;  // more than fit on any disk here
constexpr int forbidden = 7;      // the exit code of a child that may not mount

// What the child expected has been printed by itself; the parent only needs to know whether it held.
int verdict() { return ::testing::Test::HasFailure() ? 1 : 0; }

std::int64_t number(database& db, const std::string& sql) { return db.read().execute(sql)[0][0].integer(); }

struct refusal {
  int order;
  error why;
};

std::optional<refusal> place_until_refused(order_world& world) {
  for (int i = 0; i < orders_max; ++i) {
    try {
      world.place(i);
    } catch (const error& e) {
      return refusal{i, e};
    }
  }
  return std::nullopt;
}

// A row, its event and its note are there together or not at all, and the file is whole.
void expect_nothing_half_done(database& orders) {
  const auto rows = number(orders, "select count(*) from orders");
  EXPECT_GT(rows, 0);
  EXPECT_EQ(number(orders, "select count(*) from settle_outbox"), rows);
  EXPECT_EQ(number(orders, "select count(*) from settle_effects where kind = 'committed'"), rows);
  EXPECT_EQ(orders.read().execute("pragma integrity_check")[0][0].text(), "ok");
}

void expect_refused_for_now(const error& why, errc expected, const std::string& file) {
  EXPECT_EQ(why.code(), expected) << why.what();
  EXPECT_TRUE(why.retryable()) << why.what();
  EXPECT_NE(std::string(why.what()).find(file), std::string::npos) << why.what();
}

void expect_all_applied_once(order_world& world, int orders) {
  const auto report = world.verify();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.committed, orders);
  EXPECT_EQ(report.applied, orders);
  EXPECT_EQ(report.pending, 0);
  EXPECT_EQ(world.consumer().counts().failures, 0) << "no message is charged for the disk";
}

int fill_the_services_file(const temp_dir& dir) {
  order_world world(dir);
  const test::file_size_limit limit(512 * 1024);
  const auto refused = place_until_refused(world);
  if (!refused) return 2;
  expect_refused_for_now(refused->why, errc::store_unavailable, dir.file("orders.db"));
  EXPECT_EQ(code_of([&] { world.place(refused->order); }), errc::store_unavailable) << "and it stays so";
  expect_nothing_half_done(world.orders());
  return verdict();
}

// Proves O1
TEST(full_disk, a_service_whose_file_cannot_grow_refuses_and_a_new_process_goes_on) {
  temp_dir dir;
  ASSERT_EQ(child_process([&] { return fill_the_services_file(dir); }).wait(), 0);
  order_world world(dir, {.hours_later = 1});
  expect_nothing_half_done(world.orders());
  const int orders = static_cast<int>(number(world.orders(), "select count(*) from orders")) + 20;
  for (int i = 0; i < orders; ++i) world.place(i);  // those that had committed conflict with themselves
  world.drain();
  expect_all_applied_once(world, orders);
}

// The limit holds for all files of the process, so the broker's has to be the largest: it is filled with
// messages for nobody.
void make_broker_the_largest(order_world& world) {
  message ballast;
  ballast.topic = "archive";
  ballast.payload = std::string(500'000, 'x');
  for (const auto* id : {"1", "2", "3", "4", "5", "6"}) {
    ballast.id = id;
    world.broker().publishing().publish({&ballast, 1});
  }
}

int fill_the_brokers_file(const temp_dir& dir) {
  constexpr int orders = 30;
  order_world world(dir);
  make_broker_the_largest(world);
  for (int i = 0; i < orders; ++i) world.place(i);
  {
    const test::file_size_limit limit(std::filesystem::file_size(dir.file("broker.db-wal")));
    for (int i = 0; i < 5; ++i) {
      EXPECT_NO_THROW(world.relay().run_once()) << "the destination's trouble is not the relay's";
      world.time().advance(1min);
    }
    EXPECT_GE(world.log().count("relay_paused"), 2u);
    EXPECT_EQ(world.counters().value("settle_relay_failures_total", {{"fault", "destination"}}),
              static_cast<std::int64_t>(world.log().count("relay_paused")));
    EXPECT_EQ(code_of([&] { world.consumer().run_once(); }), errc::store_unavailable);
    EXPECT_EQ(number(world.broker_file(), "select count(*) from broker_messages"), 6) << "the ballast only";
    EXPECT_NO_THROW(world.place(orders)) << "publishing in transactions is not affected";
  }
  world.time().advance(1min);
  world.drain();
  EXPECT_EQ(world.log().count("relay_resumed"), 1u);
  expect_all_applied_once(world, orders + 1);
  return verdict();
}

// Proves O1, C3
TEST(full_disk, a_relay_whose_broker_cannot_grow_pauses_and_goes_on_when_it_can) {
  temp_dir dir;
  EXPECT_EQ(child_process([&] { return fill_the_brokers_file(dir); }).wait(), 0);
}

// Somebody else's file, which takes half of the disk and is deleted when it is full.
void take_room(const std::string& path, std::size_t bytes) { std::ofstream(path) << std::string(bytes, 'x'); }

int fill_the_disk(const temp_dir& dir) {
  constexpr std::size_t bytes = 4 * 1024 * 1024;
  if (!test::mount_small_disk(dir.path(), bytes)) return forbidden;
  order_world world(dir);
  take_room(dir.file("other"), bytes / 2);
  for (int i = 0; i < 5; ++i) world.place(i);
  world.drain();
  const auto refused = place_until_refused(world);
  if (!refused) return 2;
  expect_refused_for_now(refused->why, errc::store_full, dir.file("orders.db"));
  world.time().advance(1h);
  EXPECT_EQ(code_of([&] { world.relay().run_once(); }), errc::store_full);
  EXPECT_EQ(code_of([&] { world.consumer().run_once(); }), errc::store_full);
  expect_nothing_half_done(world.orders());
  std::filesystem::remove(dir.file("other"));
  for (int i = 0; i <= refused->order; ++i) world.place(i);
  world.time().advance(1min);  // the relay may be in a pause, if it was the broker that had no room
  world.drain();
  expect_all_applied_once(world, refused->order + 1);
  return verdict();
}

// Proves O1, C3
TEST(full_disk, a_full_disk_stops_everybody_and_everybody_goes_on_when_there_is_room) {
  temp_dir dir;
  const int ended = child_process([&] { return fill_the_disk(dir); }).wait();
  if (ended == forbidden) GTEST_SKIP() << "this system does not let us mount a disk of our own";
  EXPECT_EQ(ended, 0);
}

// With a checkpoint after every few pages the database's own file reaches the limit first, and its log later.
int fill_the_file_under_the_log(const temp_dir& dir) {
  test::quiet_log log;
  environment env;
  env.log = &log;
  auto db = sqlite::open(dir.file("notes.db"), {.env = env, .checkpoint_pages = 10});
  const auto write = [&](const char* sql) {
    auto tx = db->begin();
    tx.execute(sql);
    tx.commit();
  };
  constexpr auto add = "insert into notes (note) values (zeroblob(2000))";
  write("create table notes (id integer primary key, note blob not null)");
  int added = 0;
  {
    const test::file_size_limit limit(256 * 1024);
    while (added < orders_max && !code_of([&] { write(add); })) ++added;
    EXPECT_LT(added, orders_max);
    EXPECT_GT(log.count("checkpoint_failed"), 0u)
        << "a commit that is done is not refused for its checkpoint";
  }
  EXPECT_GE(number(*db, "select count(*) from notes"), added);
  const auto failed = log.count("checkpoint_failed");
  for (int i = 0; i < 100; ++i) write(add);
  EXPECT_EQ(log.count("checkpoint_failed"), failed);
  EXPECT_LE(number(*db, "select count(*) from notes"), added + 101) << "the refused one may be there or not";
  EXPECT_EQ(db->read().execute("pragma integrity_check")[0][0].text(), "ok");
  return verdict();
}

TEST(full_disk, a_checkpoint_without_room_is_taken_later_and_loses_nothing) {
  temp_dir dir;
  EXPECT_EQ(child_process([&] { return fill_the_file_under_the_log(dir); }).wait(), 0);
}

}  // namespace
}  // namespace settle
