// What people and settings do to a Kafka that is in use: offsets that are reset, retention that is
// faster than a group. Nothing is lost in silence, and nobody else is harmed.
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "support/kafka_load.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

struct kafka_accident : kafka_under_load {
  std::map<int, kafka_corner::standing> standing() const {
    return corner->standing_of("warehouse", "orders");
  }
  // In which the group lags by at least so much; nothing: in none.
  std::optional<int> partition_with(std::int64_t lag) const {
    for (const auto& [partition, at] : standing())
      if (at.lag >= lag) return partition;
    return std::nullopt;
  }
};

// Proves C2, C10: what comes again is recognised
TEST_F(kafka_accident, of_a_group_that_is_reset_to_the_beginning_repeats_nothing) {
  create_group("warehouse");
  running system(*this);
  let_it_drain(system);
  system.consuming.reset();
  system.world.consumer().leave();
  corner->reset_group("warehouse", "orders");
  system.relaying.emplace(system.world.relay());
  system.consuming.emplace(system.world.consumer());
  await([&] { return system.world.consumer().counts().duplicates > 50; });
  system.finish();
  expect_unharmed(system.world, system.load.placed, is_clean);
}

// Proves C2, C3: retention was faster than the group
TEST_F(kafka_accident, of_messages_that_retention_took_holds_their_partition_until_somebody_decides) {
  create_group("warehouse");
  running system(*this);
  let_it_drain(system);
  system.consuming.reset();
  system.world.consumer().leave();
  system.relaying.emplace(system.world.relay());
  await([&] { return partition_with(20).has_value(); });
  const int partition = *partition_with(20);
  const auto first = standing().at(partition).next;
  corner->delete_records("orders", partition, first + 10);
  const auto before = shipped(system.world);
  system.consuming.emplace(system.world.consumer());
  const auto told = "messages_missing group=warehouse topic=" + corner->prefix() +
                    "orders partition=" + std::to_string(partition);
  await([&] { return system.world.log().count(told) > 0; });
  await([&] { return shipped(system.world) > before + 100; });
  EXPECT_EQ(standing().at(partition).next, first) << "it goes on behind everybody's back";
  system.consuming.reset();
  system.world.consumer().leave();
  corner->set_offset("warehouse", "orders", partition, first + 10);
  system.consuming.emplace(system.world.consumer());
  system.finish(10);
  const auto report = system.world.verify();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.applied, system.load.placed - 10);
  EXPECT_EQ(report.pending, 10);
}

}  // namespace
}  // namespace settle::test
