// Commit → relay → broker → consumer, whole, undisturbed and disturbed, on every kind of broker.
#include <gtest/gtest.h>

#include <algorithm>

#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "support/order_world.hpp"
#include "support/scenarios.hpp"

namespace settle {
namespace {

using test::broker_kind;
using test::order_world;
using test::temp_dir;

struct pipeline : ::testing::TestWithParam<broker_kind> {
  void SetUp() override {
    if (const auto missing = on.missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  temp_dir dir;
  test::scenario_broker on{GetParam()};
};

// Proves O1, C1
TEST_P(pipeline, applies_every_committed_order_once) {
  order_world world(dir, on.with({}));
  for (int i = 0; i < 20; ++i) world.place(i);
  world.drain();
  const auto report = world.verify();
  EXPECT_TRUE(on.is_intact(report));
  EXPECT_EQ(report.committed, 20);
  EXPECT_EQ(on.messages_stored(world), 20);
  EXPECT_EQ(report.applied, 20);
  EXPECT_EQ(report.pending, 0);
}

// Proves O1
TEST_P(pipeline, never_shows_anybody_an_event_that_rolled_back) {
  order_world world(dir, on.with({}));
  {
    auto tx = world.orders().begin();
    publish(tx, test::order_placed{"order-x", "customer-x", 1});
  }
  world.place(1);
  world.drain();
  EXPECT_EQ(world.consumer().counts().applied, 1);
  EXPECT_EQ(on.messages_stored(world), 1);
}

// Proves O1, O4, C1, V3
TEST_P(pipeline, survives_a_failure_and_a_kill_at_every_fault_point) {
  const auto explored =
      test::explore_order_pipeline(dir, on, [&](const std::string& where, const verify_report& report) {
        EXPECT_TRUE(on.is_intact(report)) << where;
        EXPECT_EQ(report.committed, 4) << where;
        EXPECT_EQ(report.applied, 4) << where;
        EXPECT_EQ(report.pending, 0) << where;
      });
  for (const auto* effect :
       {"producer.commit", "outbox.insert", "relay.lease", "relay.tick", "relay.publish", "broker.store",
        "relay.progress", "broker.subscribe", "broker.lease", "consumer.handler", "consumer.commit",
        "consumer.acknowledge", "broker.acknowledge"})
    for (const auto* side : {".before", ".after"}) {
      const bool has_leases = GetParam() == broker_kind::embedded || GetParam() == broker_kind::log_in_memory;
      if (!has_leases && std::string_view(effect) == "broker.lease") continue;
      EXPECT_TRUE(std::ranges::count(explored.points, std::string(effect) + side) > 0) << effect << side;
    }
}

// The seed's first test. Proves V1, C1, I8
TEST_P(pipeline, an_event_emitted_twice_under_one_id_is_applied_once) {
  order_world world(dir, on.with({}));
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
TEST_P(pipeline, a_message_delivered_again_is_skipped_counted_and_logged) {
  order_world world(dir, on.with({}));
  world.place(1);
  world.drain();
  world.consumer().leave();
  on.forget_acknowledgements(world, "warehouse");
  world.drain();
  EXPECT_EQ(world.consumer().counts().applied, 1);
  EXPECT_EQ(world.consumer().counts().duplicates, 1);
  EXPECT_EQ(world.counters().value("settle_consumer_duplicates_total", {{"consumer", "warehouse"}}), 1);
  EXPECT_EQ(world.log().count("duplicate_skipped"), 1u);
  EXPECT_TRUE(on.is_intact(world.verify()));
}

// The seed's fourth test. Proves V1, C1
TEST_P(pipeline, the_database_itself_refuses_a_second_record_of_one_message) {
  order_world world(dir, on.with({}));
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
TEST_P(pipeline, keeps_the_order_of_each_key_with_three_relays_taking_turns) {
  order_world world(dir, on.with({}));
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
  EXPECT_TRUE(on.is_intact(report));
}

INSTANTIATE_TEST_SUITE_P(on, pipeline, ::testing::ValuesIn(test::every_broker()),
                         [](const auto& of) { return name_of(of.param); });

}  // namespace
}  // namespace settle
