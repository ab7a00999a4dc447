#include "consume/retry_policy.hpp"

#include <gtest/gtest.h>

namespace settle::consume {
namespace {

using namespace std::chrono_literals;

// Proves C3
TEST(consumers_retry_policy, is_what_the_options_say) {
  const auto usual = policy_of({.name = "c"});
  EXPECT_EQ(usual.pauses.after(2), 400ms);
  EXPECT_EQ(usual.pauses.longest, 30s);
  EXPECT_EQ(usual.attempts_max, 5);
  EXPECT_EQ(usual.passing_max_age, 24h);
  consumer_options own{.name = "c"};
  own.retry_wait = 1s;
  own.retry_wait_max = 3s;
  own.attempts_max = 7;
  own.transient_max_age = 1h;
  EXPECT_EQ(policy_of(own).pauses.after(1), 1s);
  EXPECT_EQ(policy_of(own).pauses.after(2), 3s);
  EXPECT_EQ(policy_of(own).attempts_max, 7);
  EXPECT_EQ(policy_of(own).passing_max_age, 1h);
}

}  // namespace
}  // namespace settle::consume
