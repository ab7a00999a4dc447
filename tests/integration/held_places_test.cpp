// Where held events stand among those that others may have sent; on both databases.
#include <gtest/gtest.h>

#include <map>

#include "settle/driver/broker.hpp"
#include "support/held_events_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

struct held_places : test::held_events_world {};

// The same if that one has left in good order, with a window of which nobody knows whether it is stored.
// Proves C10
TEST_P(held_places, wait_for_what_a_relay_that_has_left_may_have_sent) {
  relay first(*db, destination);
  emit("a", "later", {.deliver_at = time.now() + 1min});
  run(first);
  emit("a", "1");
  destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "stored, but the answer is lost"};
  };
  run(first);
  first.leave();
  destination.refuse = nullptr;
  time.advance(1min);
  relay heir(*db, destination);
  run_for(heir, 1s);
  EXPECT_EQ(destination.payloads(), (names{"1", "later"})) << "and there is no lease to wait for";
}

// The same for shares that go to one who joins. Proves C10
TEST_P(held_places, wait_for_what_a_relay_that_gives_shares_away_may_have_sent) {
  constexpr int keys = 32;
  test::recording_publisher heirs;
  relay first(*db, destination);
  relay heir(*db, heirs);
  for (int i = 0; i < keys; ++i) emit(std::to_string(i), "later", {.deliver_at = time.now() + 8s});
  run(first);
  for (int i = 0; i < keys; ++i) emit(std::to_string(i), "1");
  destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "stored, but the answer is lost"};
  };
  run(first);
  time.advance(4s);
  run(heir);   // says that it is there
  run(first);  // gives it a half
  time.advance(4s);
  run(heir);
  std::map<std::string, names> by_key;
  for (const auto& m : heirs.seen) by_key[m.key].push_back(m.payload);
  EXPECT_GT(by_key.size(), 5u);
  for (const auto& [key, payloads] : by_key) EXPECT_EQ(payloads, (names{"1", "later"})) << key;
}

INSTANTIATE_TEST_SUITE_P(databases, held_places, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
