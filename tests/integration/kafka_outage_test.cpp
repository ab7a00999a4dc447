// What happens to a Kafka under load: its line is cut, it is killed, a leader or a coordinator of a cluster
// is killed, consumers come and go, one sleeps. Nothing is lost, doubled or reordered, and nobody is charged.
#include <chrono>

#include "settle/consume.hpp"
#include "support/kafka_load.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

struct kafka_outage : kafka_under_load {};

// Proves C1, C3, O3, O4
TEST_F(kafka_outage, of_the_line_for_seconds_ends_without_harm) {
  survive_without(behind_a_line(), lasting(5s));
}

// Proves C1, O3, O4
TEST_F(kafka_outage, by_cuts_at_any_byte_of_either_direction_ends_without_harm) {
  survive_cuts(behind_a_line(), {0, 1, 3, 4, 20, 111, 333, 700, 2500, 6000, 20000});
}

// Proves C1, C3, O3, O4
TEST_F(kafka_outage, by_a_line_that_stalls_ends_without_harm) {
  survive_stalls(behind_a_line(), 5s);  // longer than a session
}

// Proves C1, C4
TEST_F(kafka_outage, of_a_sleeping_consumer_ends_without_harm) { survive_a_sleeping_consumer(); }

// Proves C1, C4, C8
TEST_F(kafka_outage, by_consumers_that_come_and_go_ends_without_harm) {
  survive([&](order_world& world) {
    const auto until = std::chrono::steady_clock::now() + lasting(8s);
    for (int i = 0; std::chrono::steady_clock::now() < until; ++i) {
      auto guest = world.make_consumer({.name = "warehouse"});
      {
        background consuming(*guest);
        const auto before = shipped(world);
        std::this_thread::sleep_for(1s);
        await([&] { return shipped(world) > before; });
      }
      if (i % 3 != 0) guest->leave();  // else it vanishes, and its session ends by itself
    }
  });
}

}  // namespace
}  // namespace settle::test
