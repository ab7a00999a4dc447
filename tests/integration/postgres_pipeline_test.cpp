// The whole way on PostgreSQL: commit, relay, apply once; the broker is the embedded one.
#include <gtest/gtest.h>

#include <optional>

#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "support/order_world.hpp"
#include "support/postgres_fixture.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::order_world;
using test::temp_dir;

std::int64_t count(database& db, const std::string& table) {
  return db.read().execute("select count(*) from " + table)[0][0].integer();
}

struct postgres_pipeline : ::testing::Test {
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    orders.emplace();
    warehouse.emplace();
  }

  // As if nothing had ever been there; a new database would take longer.
  void clear() const {
    dir.clear();
    for (const auto* one : {&*orders, &*warehouse}) {
      for (const std::string table : {"orders", "shipments"})
        if (!one->run("select to_regclass('" + table + "')").empty()) one->run("delete from " + table);
      one->forget_events();
    }
  }

  test::world_options options(fault_points* faults = nullptr, int hours_later = 0) const {
    return {.faults = faults,
            .hours_later = hours_later,
            .orders = orders->conninfo(),
            .warehouse = warehouse->conninfo()};
  }

  static void place_and_drain(order_world& world, int from, int to) {
    for (int i = from; i < to; ++i) world.place(i);
    world.drain();
  }

  temp_dir dir;
  std::optional<test::scratch_database> orders, warehouse;
};

// Proves O1, C1
TEST_F(postgres_pipeline, applies_every_committed_order_once) {
  order_world world(dir, options());
  place_and_drain(world, 0, 100);
  const auto report = world.verify();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.committed, 100);
  EXPECT_EQ(report.applied, 100);
  EXPECT_EQ(count(world.warehouse(), "shipments"), 100);
}

// Proves O1, C1, V3
TEST_F(postgres_pipeline, survives_a_failure_and_a_kill_at_every_fault_point) {
  const auto whole = [](order_world& world) {
    place_and_drain(world, 0, 1);
    place_and_drain(world, 1, 2);
  };
  testing::explore({
      .prepare = [&] { clear(); },
      .run =
          [&](fault_points& faults) {
            order_world world(dir, options(&faults));
            whole(world);
          },
      .recover =
          [&] {
            order_world world(dir, options(nullptr, 1));
            whole(world);
          },
      .check =
          [&](const std::string& where) {
            order_world world(dir, options(nullptr, 2));
            const auto report = world.verify();
            EXPECT_TRUE(report.clean()) << where;
            EXPECT_EQ(report.applied, 2) << where;
            EXPECT_EQ(report.pending, 0) << where;
          },
  });
}

// Proves C3, C8
TEST_F(postgres_pipeline, a_failing_order_is_rolled_back_alone_and_applied_later) {
  order_world world(dir, options());
  world.failing.insert(test::order_name(3));
  place_and_drain(world, 0, 10);
  EXPECT_EQ(world.consumer().counts().failures, 1);
  EXPECT_LT(count(world.warehouse(), "shipments"), 10);
  EXPECT_GE(count(world.warehouse(), "shipments"), 6) << "other keys go on";
  world.failing.clear();
  world.time().advance(1min);
  world.drain();
  EXPECT_EQ(count(world.warehouse(), "shipments"), 10);
  EXPECT_TRUE(world.verify().clean());
}

// Proves C1
TEST_F(postgres_pipeline, an_owner_that_slept_past_its_lease_writes_nothing) {
  order_world world(dir, options());
  place_and_drain(world, 0, 5);
  auto tx = world.warehouse().begin();
  tx.execute("update settle.consumer_fences set epoch = epoch + 1, owner = 'another'");  // it has taken over
  tx.commit();
  for (int i = 5; i < 10; ++i) world.place(i);
  world.relay().run_once();
  world.consumer().run_once();
  EXPECT_EQ(count(world.warehouse(), "shipments"), 5);
  EXPECT_GE(world.log().count("partition_has_another_owner"), 1u);
  world.drain();  // the broker has said that it is still the owner
  EXPECT_EQ(count(world.warehouse(), "shipments"), 10);
  EXPECT_TRUE(world.verify().clean());
}

// Proves C6, C10
TEST_F(postgres_pipeline, records_expire_and_late_copies_do_not_run) {
  order_world world(dir, options());
  place_and_drain(world, 0, 20);
  ASSERT_EQ(count(world.warehouse(), "settle.processed_events"), 20);
  world.time().advance(25h);
  while (world.consumer().run_once()) {
  }
  EXPECT_EQ(count(world.warehouse(), "settle.processed_events"), 0);
  auto tx = world.orders().begin();
  tx.execute("delete from settle.outbox_progress");  // a relay that has lost its progress
  tx.execute("update settle.shares set owner = null, epoch = epoch + 1, lease_until = 0");
  tx.execute(
      "insert into settle.outbox_ticks select 0, '1:1:', 1, '1'::xid8, 0 where not exists (select from "
      "settle.outbox_ticks where n = 0)");
  tx.commit();
  const auto again = world.make_relay();
  while (again->run_once()) {
  }
  world.drain();
  EXPECT_EQ(world.consumer().counts().beyond_horizon, 20);
  EXPECT_EQ(count(world.warehouse(), "shipments"), 20);
}

// A transaction that stays open for longer than records are kept, say a prepared one that was forgotten. Its
// number is lower than what has been forgotten meanwhile, and still it is a first delivery. Proves C10, O1
TEST_F(postgres_pipeline, an_event_committed_after_a_day_is_no_late_copy) {
  order_world world(dir, options());
  const test::order_placed late{"late", test::customer_of(0), 1};
  auto slow = world.orders().begin();
  publish(slow, late);
  slow.execute("select 1");  // sends it: the number is drawn
  place_and_drain(world, 0, 9);
  world.time().advance(25h);
  while (world.consumer().run_once()) {
  }
  ASSERT_EQ(count(world.warehouse(), "settle.processed_events"), 0);
  slow.commit();
  world.drain();
  EXPECT_EQ(world.consumer().counts().beyond_horizon, 0);
  EXPECT_EQ(count(world.warehouse(), "shipments where order_id = 'late'"), 1);
}

// One transaction, so one tick, and a relay that stops in the middle of it for longer than records are kept.
// Proves C10, O1
TEST_F(postgres_pipeline, the_second_half_of_a_window_is_no_late_copy_of_the_first) {
  order_world world(dir, options());
  auto tx = world.orders().begin();
  for (int i = 0; i < 10; ++i) publish(tx, test::order_placed{test::order_name(i), "one customer", 1});
  tx.commit();
  relay slow(world.orders(), world.broker().publishing(), {.batch_max = 1});
  for (int i = 0; i < 5; ++i) slow.run_once();
  while (world.consumer().run_once()) {
  }
  ASSERT_EQ(count(world.warehouse(), "settle.processed_events"), 5);
  world.time().advance(25h);
  while (world.consumer().run_once()) {
  }
  ASSERT_EQ(count(world.warehouse(), "settle.processed_events"), 0);
  slow.leave();
  world.drain();
  EXPECT_EQ(world.consumer().counts().beyond_horizon, 0);
  EXPECT_EQ(count(world.warehouse(), "shipments"), 10);
}

}  // namespace
}  // namespace settle
