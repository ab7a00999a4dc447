#include "retry/outage.hpp"

#include <gtest/gtest.h>

namespace settle::retry {
namespace {

using namespace std::chrono_literals;

const timestamp first{1'000s};

// Proves C3
TEST(retry_outage, is_tried_after_ever_longer_pauses_and_ends_with_the_first_success) {
  outage of({100ms, 1s});
  auto now = first;
  EXPECT_TRUE(of.may_try(now));
  for (const auto wait : {100ms, 400ms, 900ms, 1000ms, 1000ms}) {
    of.goes_on(now);
    EXPECT_FALSE(of.may_try(now + wait - 1us));
    now += wait;
    EXPECT_TRUE(of.may_try(now));
  }
  EXPECT_EQ(of.ends(now), 3400ms);
  EXPECT_FALSE(of.lasts());
}

TEST(retry_outage, is_not_put_off_by_a_clock_that_is_set_back) {
  outage of({100ms, 1s});
  of.goes_on(first);
  EXPECT_TRUE(of.may_try(first - 1h));
}

TEST(retry_outage, begins_again_with_the_shortest_pause_after_it_has_ended) {
  outage of({100ms, 1s});
  for (int i = 0; i < 5; ++i) of.goes_on(first);
  EXPECT_EQ(of.until(), first + 1s);
  EXPECT_EQ(of.failures(), 5);
  of.ends(first + 1s);
  EXPECT_TRUE(of.may_try(first + 1s));
  of.goes_on(first + 1h);
  EXPECT_EQ(of.until(), first + 1h + 100ms);
  EXPECT_EQ(of.ends(first + 1h + 3s), 3s);
}

TEST(retry_outage, is_written_about_less_and_less_often) {
  outage of({100ms, 1s});
  EXPECT_TRUE(of.goes_on(first));
  EXPECT_FALSE(of.goes_on(first + 100ms));
  EXPECT_TRUE(of.goes_on(first + 1s));
  of.ends(first + 2s);
  EXPECT_TRUE(of.goes_on(first + 2s)) << "another one";
}

// Proves C3
TEST(retry_outage, is_everybodys_until_others_get_through_where_one_message_has_met_it) {
  constexpr auto away = failure_class::outage;
  met_outages of_one;
  std::int64_t successes = 7;
  EXPECT_TRUE(is_everybodys(away, of_one, successes)) << "successes before its first attempt say nothing";
  of_one.meet(successes);
  EXPECT_EQ(of_one.times, 1);
  EXPECT_TRUE(is_everybodys(away, of_one, successes)) << "nobody has got through since";
  ++successes;
  EXPECT_TRUE(of_one.is_alone(successes));
  EXPECT_FALSE(is_everybodys(away, of_one, successes));
  of_one.meet(successes);
  EXPECT_TRUE(is_everybodys(away, of_one, successes)) << "and once more from there";
}

TEST(retry_outage, is_nothing_else_than_a_failure_of_that_class) {
  for (const auto why : {failure_class::transient, failure_class::permanent, failure_class::poison})
    EXPECT_FALSE(is_everybodys(why, {}, 0));
}

}  // namespace
}  // namespace settle::retry
