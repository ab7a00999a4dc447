#include "base/outage.hpp"

#include <gtest/gtest.h>

namespace settle {
namespace {

using namespace std::chrono_literals;

const timestamp first{1'000s};

// Proves C3
TEST(outage, is_tried_after_ever_longer_pauses_and_ends_with_the_first_success) {
  outage of(100ms, 1s);
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

TEST(outage, is_not_put_off_by_a_clock_that_is_set_back) {
  outage of(100ms, 1s);
  of.goes_on(first);
  EXPECT_TRUE(of.may_try(first - 1h));
}

}  // namespace
}  // namespace settle
