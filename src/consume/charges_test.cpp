#include "consume/charges.hpp"

#include <gtest/gtest.h>

namespace settle::consume {
namespace {

using namespace std::chrono_literals;

constexpr timestamp noon{1'000'000s};

// A parked message that fails once more.
struct next_failures : ::testing::Test {
  consumer_options options{.name = "c"};
  work one;

  next_failures() { one.parked.emplace(); }

  void had_failed(std::int64_t times, failure_class why, timestamp first) {
    one.parked->attempts = times;
    one.parked->charged = retry::is_passing(why) ? 0 : times;
    one.parked->first_failed_at = first;
    one.parked->history = {{first, why, "before"}};
  }
  const retry::judgement& fails(failure_class why, timestamp last_success = {}) {
    one.charge = failed_attempt{noon, why, "again"};
    judge_next_failure(one, last_success, {options, noon});
    return *one.judged;
  }
};

// Proves C3
TEST_F(next_failures, make_the_pause_longer) {
  had_failed(2, failure_class::poison, noon - 1s);
  EXPECT_EQ(fails(failure_class::poison).wait, 9 * 100ms) << "the third";
  EXPECT_FALSE(one.given_up());
}

// Proves C3
TEST_F(next_failures, are_the_last_when_the_attempts_are_used_up) {
  had_failed(4, failure_class::poison, noon - 1s);
  EXPECT_EQ(fails(failure_class::poison).give_up, dead_letter_reason::exhausted);
}

// Proves C3
TEST_F(next_failures, of_a_permanent_kind_are_the_last_at_once) {
  had_failed(1, failure_class::poison, noon - 1s);
  EXPECT_EQ(fails(failure_class::permanent).give_up, dead_letter_reason::permanent);
}

// Proves C3
TEST_F(next_failures, that_should_have_passed_do_not_count_for_one_that_nobody_understands) {
  had_failed(7, failure_class::transient, noon - 1s);
  EXPECT_EQ(fails(failure_class::poison).wait, 100ms) << "the first of its kind";
  EXPECT_FALSE(one.given_up());
}

// Proves C3
TEST_F(next_failures, that_should_pass_are_the_last_when_the_message_is_too_old) {
  had_failed(3, failure_class::transient, noon - 23h);
  EXPECT_FALSE(fails(failure_class::transient).give_up);
  one.parked->first_failed_at = noon - 25h;
  EXPECT_EQ(fails(failure_class::transient).give_up, dead_letter_reason::too_old);
}

// Proves C3
TEST_F(next_failures, in_an_outage_in_which_nobody_gets_through_make_no_message_older) {
  had_failed(3, failure_class::outage, noon - 25h);
  EXPECT_FALSE(fails(failure_class::outage, noon - 26h).give_up);
  had_failed(3, failure_class::outage, noon - 25h);
  EXPECT_EQ(fails(failure_class::outage, noon - 1h).give_up, dead_letter_reason::too_old)
      << "others got through";
}

TEST_F(next_failures, that_are_the_first_are_when_the_message_begins_to_age) {
  fails(failure_class::transient);
  EXPECT_EQ(one.parked->first_failed_at, noon);
  EXPECT_EQ(one.judged->wait, 100ms);
}

}  // namespace
}  // namespace settle::consume
