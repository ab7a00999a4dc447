#include "base/growing_log.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace settle {
namespace {

using namespace std::chrono_literals;

TEST(growing_log, writes_the_first_failure_and_then_less_and_less) {
  growing_log log;
  std::vector<int> written;
  for (int second = 0; second < 400; ++second)
    if (log.fails(timestamp(1h) + std::chrono::seconds(second))) written.push_back(second);
  EXPECT_EQ(written, (std::vector{0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363}));
  EXPECT_EQ(log.failures(), 400);
}

TEST(growing_log, tells_how_long_it_was_and_begins_anew) {
  growing_log log;
  EXPECT_EQ(log.works(timestamp(1h)), std::nullopt);
  EXPECT_TRUE(log.fails(timestamp(1h)));
  EXPECT_FALSE(log.fails(timestamp(1h) + 10ms));
  EXPECT_EQ(log.works(timestamp(1h) + 3s), 3s);
  EXPECT_EQ(log.failures(), 0);
  EXPECT_TRUE(log.fails(timestamp(1h) + 3s));
}

TEST(growing_log, is_not_silenced_by_a_clock_that_is_set_back) {
  growing_log log;
  EXPECT_TRUE(log.fails(timestamp(2h)));
  EXPECT_TRUE(log.fails(timestamp(1h)));
  EXPECT_EQ(log.works(timestamp(1h)), 0s);
}

}  // namespace
}  // namespace settle
