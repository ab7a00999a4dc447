// An event with a natural key, disturbed at every effect: the claim on the key and the event are one thing.
#include <gtest/gtest.h>

#include <algorithm>

#include "settle/publish.hpp"
#include "support/order_world.hpp"

namespace settle {
namespace {

using test::order_world;
using test::temp_dir;

constexpr int customers = 2;

// The natural key is the only one here: nothing else would stop a second event, or tell of a lost one.
void emit(order_world& world, int customer) {
  const auto name = std::to_string(customer);
  auto tx = world.orders().begin();
  const auto emitted = publish_once(tx, test::order_placed{"order-" + name, "customer-" + name, 100});
  if (!emitted.skipped)
    note_committed(
        tx, {.topic = "orders", .key = "customer-" + name, .subject = "order-" + name, .event = emitted.id});
  tx.commit("producer.commit");
}

void emit_all(order_world& world) {
  for (int i = 0; i < customers; ++i) emit(world, i);
}

void expect_one_event_per_key(order_world& world, const std::string& where) {
  const auto count = [](database& db, const std::string& what) {
    return db.read().execute("select count(" + what)[0][0].integer();
  };
  EXPECT_EQ(count(world.orders(), "*) from settle_natural_keys"), customers) << where;
  EXPECT_EQ(count(world.orders(), "*) from settle_outbox"), customers) << where;
  EXPECT_EQ(count(world.broker_file(), "distinct event_id) from broker_messages"), customers) << where;
  const auto report = world.verify();
  EXPECT_TRUE(report.clean()) << where;
  EXPECT_EQ(report.committed, customers) << where;
  EXPECT_EQ(report.applied, customers) << where;
  EXPECT_EQ(report.pending, 0) << where;
}

// Proves O5, O1, V3
TEST(publish_once, a_retry_after_a_failure_or_a_kill_at_every_fault_point_gives_one_event) {
  temp_dir dir;
  const auto explored = testing::explore({
      .prepare = [&] { dir.clear(); },
      .run =
          [&](fault_points& faults) {
            order_world world(dir, {.faults = &faults});
            emit_all(world);
          },
      .recover =
          [&] {
            order_world world(dir, {.hours_later = 1});
            emit_all(world);
            world.drain();
          },
      .check =
          [&](const std::string& where) {
            order_world world(dir, {.hours_later = 2});
            expect_one_event_per_key(world, where);
          },
  });
  for (const auto* effect : {"outbox.natural_key", "outbox.insert", "producer.commit"})
    for (const auto* side : {".before", ".after"})
      EXPECT_TRUE(std::ranges::count(explored.points, std::string(effect) + side) > 0) << effect << side;
}

}  // namespace
}  // namespace settle
