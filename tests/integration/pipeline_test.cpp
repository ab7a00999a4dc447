// Commit → relay → broker → consumer, whole, undisturbed and disturbed.
#include <gtest/gtest.h>

#include <algorithm>

#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "support/order_world.hpp"
#include "support/scenarios.hpp"

namespace settle {
namespace {

using test::order_world;
using test::temp_dir;

// Proves O1, C1
TEST(pipeline, applies_every_committed_order_once) {
  temp_dir dir;
  order_world world(dir);
  for (int i = 0; i < 20; ++i) world.place(i);
  world.drain();
  const auto report = world.verify();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.committed, 20);
  EXPECT_EQ(report.published, 20);
  EXPECT_EQ(report.applied, 20);
  EXPECT_EQ(report.pending, 0);
}

// Proves O1
TEST(pipeline, never_shows_anybody_an_event_that_rolled_back) {
  temp_dir dir;
  order_world world(dir);
  {
    auto tx = world.orders().begin();
    publish(tx, test::order_placed{"order-x", "customer-x", 1});
  }
  world.place(1);
  world.drain();
  EXPECT_EQ(world.consumer().counts().applied, 1);
  EXPECT_EQ(world.broker_file().read().execute("select count(*) from broker_messages")[0][0].integer(), 1);
}

// Proves O1, O4, C1, V3
TEST(pipeline, survives_a_failure_and_a_kill_at_every_fault_point) {
  temp_dir dir;
  const auto explored =
      test::explore_order_pipeline(dir, [](const std::string& where, const verify_report& report) {
        EXPECT_TRUE(report.clean()) << where;
        EXPECT_EQ(report.committed, 4) << where;
        EXPECT_EQ(report.applied, 4) << where;
        EXPECT_EQ(report.pending, 0) << where;
      });
  for (const auto* effect :
       {"producer.commit", "outbox.insert", "relay.lease", "relay.tick", "relay.publish", "broker.store",
        "relay.progress", "broker.subscribe", "broker.lease", "consumer.handler", "consumer.commit",
        "consumer.acknowledge", "broker.acknowledge"})
    for (const auto* side : {".before", ".after"})
      EXPECT_TRUE(std::ranges::count(explored.points, std::string(effect) + side) > 0) << effect << side;
}

// The seed's first test. Proves V1, C1, I8
TEST(pipeline, an_event_emitted_twice_under_one_id_is_applied_once) {
  temp_dir dir;
  order_world world(dir);
  const auto id = world.orders().env().ids->next_as<event_id>();
  for (int i = 0; i < 2; ++i) {
    auto tx = world.orders().begin();
    publish(tx, test::order_placed{"order-1", "customer-1", 1}, {.id = id});
    tx.commit();
  }
  world.drain();
  EXPECT_EQ(world.consumer().counts().applied, 1);
  EXPECT_EQ(world.consumer().counts().duplicates, 1);
}

// The seed's second test. Proves V1, C1, C7
TEST(pipeline, a_message_delivered_again_is_skipped_counted_and_logged) {
  temp_dir dir;
  order_world world(dir);
  world.place(1);
  world.drain();
  // The acknowledgement is lost: the group's position goes back, and a new owner reads from there.
  {
    auto tx = world.broker_file().begin();
    tx.execute("update settle_shares set position = 0 where scope like 'group/%'");
    tx.commit();
  }
  world.consumer().leave();
  world.drain();
  EXPECT_EQ(world.consumer().counts().applied, 1);
  EXPECT_EQ(world.consumer().counts().duplicates, 1);
  EXPECT_EQ(world.counters().value("settle_consumer_duplicates_total", {{"consumer", "warehouse"}}), 1);
  EXPECT_EQ(world.log().count("duplicate_skipped"), 1u);
  EXPECT_TRUE(world.verify().clean());
}

// The seed's fourth test. Proves V1, C1
TEST(pipeline, the_database_itself_refuses_a_second_record_of_one_message) {
  temp_dir dir;
  order_world world(dir);
  world.place(1);
  world.drain();
  auto tx = world.warehouse().begin();
  const auto record = tx.execute("select consumer, message_id from settle_processed_events");
  ASSERT_EQ(record.size(), 1u);
  try {
    tx.execute(
        "insert into settle_processed_events (consumer, message_id, topic, event_type, processed_at) "
        "values ($1, $2, 'orders', 'order.placed', 0)",
        {record[0][0], record[0][1]});
    FAIL() << "a second record was accepted";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::constraint_violated);
  }
}

// Proves O4, C8
TEST(pipeline, keeps_the_order_of_each_key_with_three_relays_taking_turns) {
  temp_dir dir;
  order_world world(dir);
  auto second = world.make_relay();
  auto third = world.make_relay();
  for (int i = 0; i < 60; ++i) {
    world.place(i);
    if (i % 7 == 0) second->run_once();
    if (i % 5 == 0) third->run_once();
    if (i % 11 == 0) world.time().advance(std::chrono::seconds(4));  // leases move between them
    if (i % 3 == 0) world.relay().run_once();
    if (i % 13 == 0) world.consumer().run_once();
  }
  for (int i = 0; i < 5; ++i) {
    world.time().advance(std::chrono::seconds(4));
    while (second->run_once() || third->run_once()) {
    }
    world.drain();
  }
  const auto report = world.verify();
  EXPECT_EQ(report.applied, 60);
  EXPECT_EQ(report.reordered, 0);
  EXPECT_TRUE(report.clean());
}

}  // namespace
}  // namespace settle
