// What a consumer says of messages that do not simply run, on both databases.
#include <gtest/gtest.h>

#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

using consumer_logs = test::failing_consumer;

// Proves D7
TEST_P(consumer_logs, name_each_message_that_waits_behind_another) {
  for (const auto* id : {"1", "2", "3"}) deliver(id, "a");
  failing["1"] = failure_class::poison;
  auto c = make_consumer();
  drain(*c);
  EXPECT_EQ(log.count("parked_behind consumer=tester message_id=2 type=thing.done key=a"), 1u);
  EXPECT_EQ(log.count("parked_behind consumer=tester message_id=3 type=thing.done key=a"), 1u);
  EXPECT_EQ(log.count("parked_behind"), 2u);
}

// The first owner ends without a word. Proves C9, D7
TEST_P(consumer_logs, name_each_message_that_is_run_alone_after_an_unclean_end) {
  broker.partition = "things/0";
  deliver("1", "a");
  auto gone = make_consumer();
  drain(*gone);
  gone.reset();
  deliver("2", "b");
  auto next = make_consumer();
  drain(*next);
  EXPECT_EQ(log.count("cautious_mode consumer=tester partition=things/0 messages=64"), 1u);
  EXPECT_EQ(log.count("parked_cautiously consumer=tester message_id=2 type=thing.done key=b"), 1u);
  EXPECT_EQ(log.count("parked_cautiously"), 1u);
  drain_for(*next, 1s);
  EXPECT_EQ(effects(), (names{"1", "2"}));
}

// Proves D3, D7
TEST_P(consumer_logs, name_a_replay_that_is_for_another) {
  deliver("1", "a");
  broker.messages[0].extensions["settlereplayfor"] = "somebody";
  broker.messages[0].extensions["settlereplayof"] = "1.1";
  auto c = make_consumer();
  drain(*c);
  EXPECT_EQ(log.count("replay_for_another consumer=tester message_id=1 type=thing.done key=a"), 1u);
  EXPECT_TRUE(effects().empty());
}

// A hundred of one event in a second; the next second begins with how many there were more. Proves D7
TEST_P(consumer_logs, are_limited_per_second_and_say_what_was_left_out) {
  constexpr int count = 130;
  for (int i = 0; i < count; ++i) {
    deliver(std::to_string(i), std::to_string(i));
    refusing[std::to_string(i)] = failure_class::permanent;
  }
  auto c = make_consumer();
  drain(*c);
  EXPECT_EQ(c->counts().dead_letters, count);
  EXPECT_EQ(log.count("handler_failed"), 100u);
  EXPECT_EQ(log.count("dead_lettered"), 100u) << "each event has its own limit";
  EXPECT_EQ(log.count("lines_left_out"), 0u);
  time.advance(1s);
  deliver("late", "late");
  refusing["late"] = failure_class::permanent;
  drain(*c);
  EXPECT_EQ(log.count("handler_failed"), 101u);
  EXPECT_EQ(log.count("lines_left_out consumer=tester event=handler_failed lines=30"), 1u);
  EXPECT_EQ(log.count("lines_left_out consumer=tester event=dead_lettered lines=30"), 1u);
  EXPECT_EQ(counters.value("settle_consumer_failures_total", {{"consumer", "tester"}}), count + 1)
      << "what is counted is complete";
}

INSTANTIATE_TEST_SUITE_P(databases, consumer_logs, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
