// Something that every message needs is away, on both databases.
#include <gtest/gtest.h>

#include <algorithm>

#include "settle/error.hpp"
#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

struct consumer_outage : test::failing_consumer {};

// Proves C3
TEST_P(consumer_outage, an_outage_pauses_the_consumer_and_charges_nobody) {
  for (int i = 0; i < 10; ++i) {
    deliver(std::to_string(i), "k" + std::to_string(i));
    failing[std::to_string(i)] = failure_class::outage;
  }
  auto c = make_consumer();
  drain(*c);
  const auto before = calls.size();
  drain(*c);
  EXPECT_EQ(calls.size(), before) << "it waits";
  drain_for(*c, 60s);
  EXPECT_LT(calls.size(), 40u) << "and tries now and then, with one message";
  failing.clear();
  drain_for(*c, 11s);
  EXPECT_EQ(effects().size(), 10u);
  EXPECT_EQ(c->counts().failures, 0);
  EXPECT_EQ(c->counts().parked, 0);
  EXPECT_EQ(c->counts().dead_letters, 0);
  EXPECT_EQ(c->counts().pauses, 1);
  EXPECT_EQ(log.count("consumer_paused"), 1u);
  EXPECT_EQ(log.count("consumer_resumed"), 1u);
}

// The message over which it paused is given up, and no other comes to tell whether it is over. Proves C3
TEST_P(consumer_outage, one_that_may_be_over_lets_an_idle_consumer_sleep) {
  deliver("1", "a");
  failing["1"] = failure_class::outage;
  auto c = make_consumer();
  drain(*c);
  const auto& paused = c->arrivals();
  failing["1"] = failure_class::permanent;
  drain_for(*c, 11s);
  ASSERT_EQ(dead_letters(*db).size(), 1u);
  EXPECT_GE(c->idle_wait(), 50ms);
  EXPECT_NE(&c->arrivals(), &paused) << "it wakes for what arrives";
  deliver("2", "b");
  drain(*c);
  EXPECT_EQ(effects(), names{"2"});
  EXPECT_EQ(log.count("consumer_resumed"), 1u);
}

// Proves C3
TEST_P(consumer_outage, an_outage_uses_up_no_attempts_of_a_message_that_waits) {
  deliver("1", "a");
  failing["1"] = failure_class::poison;
  auto c = make_consumer();
  drain(*c);
  failing["1"] = failure_class::outage;
  drain_for(*c, 60s);
  failing["1"] = failure_class::poison;
  time.advance(31s);
  drain(*c);
  EXPECT_EQ(c->counts().dead_letters, 0) << "it has failed twice through its own fault";
  drain_for(*c, 10s);
  EXPECT_EQ(c->counts().dead_letters, 1);
}

// More failures than are remembered, all expected to pass. Proves C3
TEST_P(consumer_outage, what_has_passed_a_hundred_times_uses_up_no_attempts_either) {
  deliver("1", "a");
  failing["1"] = failure_class::transient;
  auto options = plain();
  options.transient_max_age = 24h * 365;
  auto c = make_consumer(options);
  for (int n = 0; n < 130; ++n) {
    drain(*c);
    time.advance(31s);
  }
  failing["1"] = failure_class::poison;
  drain(*c);
  EXPECT_EQ(c->counts().dead_letters, 0);
  failing.clear();
  drain_for(*c, 1min);
  EXPECT_EQ(effects(), names{"1"});
}

// Proves C3
TEST_P(consumer_outage, nobody_grows_too_old_in_an_outage) {
  deliver("1", "a");
  failing["1"] = failure_class::poison;
  auto options = plain();
  options.transient_max_age = 1h;
  auto c = make_consumer(options);
  drain(*c);
  ASSERT_EQ(count("parked_messages"), 1);
  failing["1"] = failure_class::outage;
  for (int n = 0; n < 300; ++n) {
    drain(*c);
    time.advance(31s);
  }
  failing["1"] = failure_class::transient;
  drain(*c);
  EXPECT_EQ(c->counts().dead_letters, 0);
  failing.clear();
  drain_for(*c, 1min);
  EXPECT_EQ(effects(), names{"1"});
}

// A rebalance takes away what an outage was noticed with. Proves C3
TEST_P(consumer_outage, an_outage_ends_with_a_parked_message_if_there_is_no_other) {
  deliver("1", "a");
  failing["1"] = failure_class::poison;
  auto c = make_consumer();
  drain(*c);
  deliver("2", "b");
  failing["2"] = failure_class::outage;
  drain(*c);
  ASSERT_EQ(c->counts().pauses, 1);
  broker.revoke = {0};
  failing.clear();
  drain_for(*c, 1min);
  EXPECT_EQ(effects(), names{"1"});
  EXPECT_EQ(log.count("consumer_resumed"), 1u);
}

// Proves C3
TEST_P(consumer_outage, a_store_that_is_away_is_said_once_and_that_it_is_back_too) {
  deliver("1", "a");
  auto c = make_consumer();
  broker.away = true;
  for (int n = 0; n < 3; ++n) EXPECT_THROW(c->run_once(), error);
  EXPECT_EQ(log.count("consumer_paused"), 1u);
  EXPECT_EQ(c->counts().pauses, 1);
  broker.away = false;
  drain(*c);
  EXPECT_EQ(log.count("consumer_resumed"), 1u);
  EXPECT_EQ(effects(), names{"1"});
}

// Proves C3, C8
TEST_P(consumer_outage, one_message_that_calls_itself_an_outage_does_not_stop_the_others) {
  for (const auto* id : {"1", "2", "3"}) deliver(id, id);
  failing["1"] = failure_class::outage;
  auto c = make_consumer();
  drain_for(*c, 5s);
  EXPECT_EQ(effects(), (names{"2", "3"}));
  EXPECT_EQ(c->counts().parked, 1);
  failing.clear();
  drain_for(*c, 31s);
  EXPECT_EQ(effects(), (names{"2", "3", "1"}));
}

// Proves C3
TEST_P(consumer_outage, trouble_of_the_store_while_parked_messages_are_tried_charges_nobody) {
  deliver("1", "a");
  failing["1"] = failure_class::poison;
  auto options = plain();
  options.transient_max_age = 24h * 365;
  auto c = make_consumer(options);
  drain(*c);
  for (int i = 0; i < 10; ++i) {
    time.advance(30s);
    auto tx = db->begin();  // nobody else gets the key, or the file
    tx.execute("update " + table("parked_keys") + " set next_at = next_at");
    try {
      c->run_once();
    } catch (const error& e) {
      EXPECT_TRUE(e.retryable()) << e.what();
    }
  }
  EXPECT_EQ(c->counts().failures, 1);
  failing.clear();
  drain_for(*c, 40s);
  EXPECT_EQ(effects(), names{"1"});
  EXPECT_EQ(c->counts().dead_letters, 0);
}

INSTANTIATE_TEST_SUITE_P(databases, consumer_outage, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
