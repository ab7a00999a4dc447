#include "dead_letter/rate_limiter.hpp"

#include <gtest/gtest.h>

namespace settle::dlq {
namespace {

using namespace std::chrono_literals;

timestamp at(duration since_start) { return timestamp(since_start); }

TEST(rate_limiter, without_a_limit_nobody_waits) {
  rate_limiter free(0);
  free.note(at(0s), 1'000'000);
  EXPECT_EQ(free.wait(at(0s), 1'000'000), 0s);
}

TEST(rate_limiter, no_second_has_more_than_its_share) {
  rate_limiter ten(10);
  EXPECT_EQ(ten.at_once_max(), 10);
  ten.note(at(0s), 4);
  EXPECT_EQ(ten.wait(at(100ms), 6), 0s);
  ten.note(at(100ms), 5);
  EXPECT_EQ(ten.wait(at(200ms), 1), 0s);
  EXPECT_EQ(ten.wait(at(200ms), 2), 800ms) << "when the first ones are a second old";
  EXPECT_EQ(ten.wait(at(200ms), 10), 900ms) << "when all of them are";
  EXPECT_EQ(ten.wait(at(1100ms), 10), 0s);
}

TEST(rate_limiter, may_be_slower_than_one_a_second) {
  rate_limiter slow(0.25);
  EXPECT_EQ(slow.at_once_max(), 1);
  slow.note(at(0s), 1);
  EXPECT_EQ(slow.wait(at(1s), 1), 3s);
  EXPECT_EQ(slow.wait(at(4s), 1), 0s);
}

TEST(rate_limiter, does_not_wait_for_a_clock_that_was_set_back) {
  rate_limiter one(1);
  one.note(at(1h), 1);
  EXPECT_EQ(one.wait(at(1s), 1), 0s);
  one.note(at(1s), 1);
  EXPECT_EQ(one.wait(at(1s), 1), 1s);
}

}  // namespace
}  // namespace settle::dlq
