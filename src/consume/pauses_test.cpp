#include "consume/pauses.hpp"

#include <gtest/gtest.h>

#include "consume/failures.hpp"
#include "settle/testing.hpp"

namespace settle::consume {
namespace {

using namespace std::chrono_literals;

class recorded_events final : public log_sink {
 public:
  bool enabled(log_level) const override { return false; }
  void write(log_level, std::string_view event, std::initializer_list<log_field>) override {
    events.emplace_back(event);
  }
  std::vector<std::string> events;
};

struct consumers_pauses : ::testing::Test {
  testing::manual_time time;
  recorded_events log;
  environment env{.time = &time, .log = &log};
  consumer_options options{.name = "c"};
  reporting report{env, "c"};
  pauses waits{options, env, report};
  failures judge{options, env, report, waits};
  work one, other;

  failed_attempt failed(failure_class why) const { return {env.now(), why, "no"}; }
};

// Proves C3
TEST_F(consumers_pauses, begin_with_an_outage_and_grow_while_it_lasts) {
  EXPECT_TRUE(waits.may_try());
  EXPECT_TRUE(waits.begin_with(one, failed(failure_class::outage)));
  EXPECT_TRUE(waits.outage_lasts());
  EXPECT_FALSE(waits.may_try());
  EXPECT_EQ(waits.until(), env.now() + 100ms);
  time.advance(100ms);
  EXPECT_TRUE(waits.may_try());
  EXPECT_TRUE(waits.begin_with(one, failed(failure_class::outage)));
  EXPECT_EQ(waits.until(), env.now() + 400ms);
}

// Proves C3
TEST_F(consumers_pauses, end_when_handlers_get_through) {
  waits.begin_with(one, failed(failure_class::outage));
  time.advance(1s);
  waits.handlers_succeeded();
  EXPECT_FALSE(waits.outage_lasts());
  EXPECT_EQ(waits.last_success(), env.now());
  EXPECT_EQ(log.events, (std::vector<std::string>{"consumer_paused", "consumer_resumed"}));
}

TEST_F(consumers_pauses, do_not_begin_with_a_messages_own_failure) {
  for (const auto why : {failure_class::poison, failure_class::transient, failure_class::permanent})
    EXPECT_FALSE(waits.begin_with(one, failed(why)));
  EXPECT_FALSE(waits.outage_lasts());
}

// Proves C3
TEST_F(consumers_pauses, do_not_begin_again_with_a_message_that_is_alone_with_its_outage) {
  waits.begin_with(one, failed(failure_class::outage));
  waits.handlers_succeeded();
  EXPECT_FALSE(waits.begin_with(one, failed(failure_class::outage))) << "others got through since";
  EXPECT_TRUE(waits.begin_with(other, failed(failure_class::outage)));
}

TEST_F(consumers_pauses, do_not_begin_with_a_message_that_is_parked) {
  one.parked.emplace();
  EXPECT_FALSE(waits.begin_with(one, failed(failure_class::outage)));
}

TEST_F(consumers_pauses, of_a_consumer_that_is_cut_off_are_said_once) {
  waits.round_failed(error(errc::invalid_argument, "not an outage"));
  EXPECT_FALSE(waits.is_cut_off());
  waits.round_failed(error(errc::store_unavailable, "the database is away"));
  waits.round_failed(error(errc::store_unavailable, "the database is away"));
  EXPECT_TRUE(waits.is_cut_off());
  waits.round_succeeded();
  waits.round_succeeded();
  EXPECT_FALSE(waits.is_cut_off());
  EXPECT_EQ(log.events, (std::vector<std::string>{"consumer_paused", "consumer_resumed"}));
  EXPECT_EQ(report.counts().pauses, 1);
}

using consumers_failures = consumers_pauses;

// Proves C3
TEST_F(consumers_failures, charge_a_message_that_has_failed_alone_unless_all_wait) {
  judge.failed_alone(one, failed(failure_class::poison));
  EXPECT_EQ(one.charge->why, failure_class::poison);
  judge.failed_alone(other, failed(failure_class::outage));
  EXPECT_FALSE(other.charge);
  EXPECT_TRUE(waits.outage_lasts());
  EXPECT_EQ(report.counts().failures, 1);
}

TEST_F(consumers_failures, that_cannot_be_written_down_are_trouble_of_the_store) {
  judge.failed_alone(one, failed(failure_class::poison));
  EXPECT_THROW(judge.failed_alone(one, failed(failure_class::poison)), error);
}

// Proves C3
TEST_F(consumers_failures, are_classed_by_the_users_rule_first) {
  const handler_failed thrown(failure_class::permanent, "no");
  EXPECT_EQ(judge.describe(thrown, one.what()).why, failure_class::permanent);
  options.classify = [](const std::exception&, const message&) { return failure_class::transient; };
  EXPECT_EQ(judge.describe(thrown, one.what()).why, failure_class::transient);
  options.classify = [](const std::exception&, const message&) { return std::nullopt; };
  EXPECT_EQ(judge.describe(thrown, one.what()).why, failure_class::permanent);
}

TEST_F(consumers_failures, are_classed_without_a_rule_that_throws) {
  options.classify = [](const std::exception&, const message&) -> std::optional<failure_class> { throw 1; };
  EXPECT_EQ(judge.describe(handler_failed(failure_class::permanent, "no"), one.what()).why,
            failure_class::permanent);
}

TEST_F(consumers_failures, have_a_text_that_can_be_stored) {
  const auto how = judge.describe(std::runtime_error(std::string(5000, 'x') + "\xff"), one.what());
  EXPECT_EQ(how.error.size(), 4000u);
  EXPECT_EQ(how.at, env.now());
}

}  // namespace
}  // namespace settle::consume
