#include "base/log_limit.hpp"

#include <gtest/gtest.h>

namespace settle {
namespace {

using namespace std::chrono_literals;

TEST(log_limit, lets_so_many_lines_through_per_second_and_counts_the_rest) {
  log_limit two(2);
  timestamp now(100s);
  EXPECT_EQ(two.ask(now), 0);
  EXPECT_EQ(two.ask(now + 1ms), 0);
  EXPECT_EQ(two.ask(now + 2ms), std::nullopt);
  EXPECT_EQ(two.ask(now + 999ms), std::nullopt);
  EXPECT_EQ(two.ask(now + 1s), 2) << "were left out";
  EXPECT_EQ(two.ask(now + 1s), 0);
}

TEST(log_limit, is_not_silenced_by_a_clock_that_is_set_back) {
  log_limit one(1);
  EXPECT_EQ(one.ask(timestamp(1h)), 0);
  EXPECT_EQ(one.ask(timestamp(1s)), 0);
}

}  // namespace
}  // namespace settle
