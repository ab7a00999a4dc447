#include "lock/schedule.hpp"

#include <gtest/gtest.h>

namespace settle::locking {
namespace {

using namespace std::chrono_literals;

TEST(lock_schedule, renews_three_times_per_ttl_counted_from_before_the_call) {
  const timestamp asked(1000s);
  const auto times = lease_from(asked, 30s);
  EXPECT_EQ(times.renew_at, asked + 10s);
  EXPECT_EQ(times.expires_at, asked + 30s);
}

TEST(lock_schedule, a_clock_that_was_set_back_puts_nothing_off) {
  const timestamp asked(1000s);
  const auto times = lease_from(asked, 30s);
  for (const auto now : {asked, asked + 10s, asked + 29s, asked + 99s}) {
    EXPECT_EQ(seen_at(now, times, 30s).renew_at, times.renew_at);
    EXPECT_EQ(seen_at(now, times, 30s).expires_at, times.expires_at);
  }
  for (const auto now : {asked - 1us, asked - 500s}) {
    EXPECT_EQ(seen_at(now, times, 30s).renew_at, now);
    EXPECT_EQ(seen_at(now, times, 30s).expires_at, now + 30s);
  }
}

TEST(lock_schedule, pauses_double_up_to_the_longest_give_or_take_a_half) {
  for (const auto& [looks, whole] :
       {std::pair(0, 2ms), {1, 4ms}, {5, 64ms}, {6, 100ms}, {1'000'000, 100ms}}) {
    EXPECT_EQ(poll_wait(looks, 100ms, 0), duration(whole) / 2) << looks;
    EXPECT_EQ(poll_wait(looks, 100ms, duration(whole).count()), duration(whole) * 3 / 2) << looks;
    for (const std::uint64_t random : {1ull, 77'777ull, ~0ull}) {
      EXPECT_GE(poll_wait(looks, 100ms, random), duration(whole) / 2);
      EXPECT_LE(poll_wait(looks, 100ms, random), duration(whole) * 3 / 2);
    }
  }
  EXPECT_GE(poll_wait(3, 0ms, 1), 0ms) << "not even a maximum of nothing breaks it";
}

}  // namespace
}  // namespace settle::locking
