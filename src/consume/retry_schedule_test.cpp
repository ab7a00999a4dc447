#include "consume/retry_schedule.hpp"

#include <gtest/gtest.h>

namespace settle::consume {
namespace {

using namespace std::chrono_literals;
using look = retry_schedule::look;

constexpr timestamp noon{1'000'000s};

struct parked_retries : ::testing::Test {
  retry_schedule schedule{{.retry_wait = 100ms,
                           .retry_wait_max = 30s,
                           .idle_poll = 500ms,
                           .announced_for = 5s,
                           .together_max = 8}};

  // A look that finds nothing, or nothing that is due before then.
  void finds_none(timestamp now, std::optional<timestamp> due = std::nullopt) {
    schedule.looking(now);
    schedule.found_none(now, due ? std::optional(retry_schedule::range{*due, *due}) : std::nullopt);
  }
};

TEST_F(parked_retries, are_looked_for_at_the_start) { EXPECT_EQ(schedule.ask(noon, false), look::now); }

TEST_F(parked_retries, are_looked_for_now_and_then_because_others_park_too) {
  finds_none(noon);
  EXPECT_EQ(schedule.ask(noon + 499ms, false), look::none);
  EXPECT_EQ(schedule.ask(noon + 500ms, false), look::now);
}

TEST_F(parked_retries, are_looked_for_when_the_next_one_is_due) {
  finds_none(noon, noon + 70ms);
  EXPECT_EQ(schedule.next_look(), noon + 70ms);
  EXPECT_EQ(schedule.ask(noon + 69ms, false), look::none);
  EXPECT_EQ(schedule.ask(noon + 70ms, false), look::now);
}

TEST_F(parked_retries, are_looked_for_when_an_own_one_is_due_before_that) {
  finds_none(noon, noon + 400ms);
  schedule.expect(noon + 100ms);
  schedule.expect(noon + 300ms);
  EXPECT_EQ(schedule.next_look(), noon + 100ms);
}

TEST_F(parked_retries, that_others_have_in_hand_are_not_asked_for_all_the_time) {
  finds_none(noon, noon - 1s);
  EXPECT_EQ(schedule.next_look(), noon + 100ms);
  schedule.looking(noon + 100ms);
  schedule.all_elsewhere(noon + 100ms);
  EXPECT_EQ(schedule.next_look(), noon + 200ms);
}

TEST_F(parked_retries, are_left_to_the_next_batch_under_load_and_not_twice) {
  EXPECT_EQ(schedule.ask(noon, true), look::with_the_next_batch);
  EXPECT_TRUE(schedule.is_left_to_the_batch());
  EXPECT_EQ(schedule.ask(noon, true), look::now) << "the batch had to be split, and did not look";
  EXPECT_FALSE(schedule.is_left_to_the_batch());
}

TEST_F(parked_retries, that_came_too_late_are_looked_for_now) {
  schedule.ask(noon, true);
  schedule.announced(noon, 1);
  schedule.came_too_late();
  EXPECT_EQ(schedule.ask(noon + 1s, true), look::now);
}

TEST_F(parked_retries, that_are_few_let_others_gather_under_load) {
  schedule.looking(noon);
  schedule.announced(noon, 7);
  EXPECT_EQ(schedule.ask(noon + 9ms, true), look::none) << "a tenth of retry_wait";
  EXPECT_EQ(schedule.ask(noon + 9ms, false), look::now) << "there is nothing else to do";
  EXPECT_EQ(schedule.ask(noon + 10ms, true), look::with_the_next_batch);
}

TEST_F(parked_retries, that_are_many_let_nobody_gather) {
  schedule.looking(noon);
  schedule.announced(noon, 8);
  EXPECT_EQ(schedule.ask(noon, true), look::with_the_next_batch);
}

TEST_F(parked_retries, are_not_looked_for_more_often_than_a_due_one_asks_for) {
  finds_none(noon, noon + 1us);
  EXPECT_EQ(schedule.next_look(), noon + 1us);
  finds_none(noon, noon + 1h);
  EXPECT_EQ(schedule.next_look(), noon + 500ms) << "others may park some before";
}

TEST_F(parked_retries, are_looked_for_by_the_first_batch_after_one_that_was_announced) {
  schedule.ask(noon, true);
  schedule.announced(noon, 8);
  EXPECT_FALSE(schedule.is_left_to_the_batch());
  EXPECT_EQ(schedule.ask(noon, true), look::with_the_next_batch);
}

TEST_F(parked_retries, do_not_wait_for_a_clock_that_was_set_back) {
  finds_none(noon, noon + 400ms);
  EXPECT_EQ(schedule.ask(noon - 1h, false), look::now);
  schedule.looking(noon);
  schedule.announced(noon, 1);
  EXPECT_EQ(schedule.ask(noon - 1h, true), look::with_the_next_batch);
}

TEST_F(parked_retries, that_would_wait_for_longer_than_anything_does_are_pulled) {
  finds_none(noon, schedule.latest(noon));
  EXPECT_FALSE(schedule.somebody_waits_too_long());
  finds_none(noon, schedule.latest(noon) + 1us);
  EXPECT_TRUE(schedule.somebody_waits_too_long());
  schedule.pulled(noon);
  EXPECT_FALSE(schedule.somebody_waits_too_long());
  EXPECT_EQ(schedule.ask(noon, false), look::now);
}

TEST_F(parked_retries, begin_alone_and_go_together_where_all_goes_well) {
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 5; ++i) {
    sizes.push_back(schedule.together());
    schedule.tried(true);
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 2, 4, 8, 8}));
  schedule.tried(false);
  EXPECT_EQ(schedule.together(), 1u);
}

}  // namespace
}  // namespace settle::consume
