#include "retry/backoff.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "settle/testing.hpp"

namespace settle::retry {
namespace {

using namespace std::chrono_literals;

const timestamp now{1'000s};

// One number for ever, and how often it was asked for.
struct fixed_random final : random_source {
  explicit fixed_random(std::uint64_t number) : number_(number) {}
  std::uint64_t next() override {
    ++asked;
    return number_;
  }
  int asked = 0;

 private:
  std::uint64_t number_;
};

constexpr auto largest = std::numeric_limits<std::uint64_t>::max();

// Proves C3
TEST(retry_backoff, grows_with_the_square_of_the_failures_up_to_the_longest) {
  constexpr backoff usual;
  EXPECT_EQ(usual.after(1), 100ms);
  EXPECT_EQ(usual.after(2), 400ms);
  EXPECT_EQ(usual.after(17), 28'900ms);
  EXPECT_EQ(usual.after(18), 30s);
  EXPECT_EQ((backoff{.longest = 1s}.after(4)), 1s);
}

TEST(retry_backoff, is_over_when_its_time_has_come) {
  constexpr backoff usual;
  EXPECT_FALSE(usual.is_over(now + 1us, now));
  EXPECT_TRUE(usual.is_over(now, now));
  EXPECT_FALSE(usual.is_over(now + 30s, now));
}

TEST(retry_backoff, is_over_when_the_clock_was_set_back) {
  constexpr backoff usual;
  EXPECT_TRUE(usual.is_over(now + 30s + 1us, now));
}

TEST(retry_backoff, of_what_has_not_failed_doubles_up_to_the_longest) {
  EXPECT_EQ(doubling_wait(-1, 1s, 10s), 1s);
  EXPECT_EQ(doubling_wait(0, 1s, 10s), 1s);
  EXPECT_EQ(doubling_wait(3, 1s, 10s), 8s);
  EXPECT_EQ(doubling_wait(4, 1s, 10s), 10s);
  EXPECT_EQ(doubling_wait(1'000'000, 1s, 10s), 10s);
  EXPECT_EQ(doubling_wait(0, 20s, 10s), 10s);
  EXPECT_EQ(doubling_wait(1'000'000, 1s, duration::max()), duration::max());
}

TEST(retry_jitter, makes_a_pause_longer_by_up_to_its_part) {
  fixed_random none(0), half(largest / 2 + 1), most(largest);
  EXPECT_EQ(jittered(100ms, 0.2, none), 100ms);
  EXPECT_EQ(jittered(100ms, 0.2, half), 110ms);
  EXPECT_LT(jittered(100ms, 0.2, most), 120ms);
  EXPECT_GE(jittered(100ms, 0.2, most), 120ms - 1us);
}

TEST(retry_jitter, differs_from_time_to_time) {
  testing::seeded_random random(1);
  EXPECT_NE(jittered(1h, 0.2, random), jittered(1h, 0.2, random));
}

// A simulation must choose the same whether or not others jitter.
TEST(retry_jitter, of_nothing_uses_no_random_number) {
  fixed_random random(largest);
  EXPECT_EQ(jittered(100ms, 0, random), 100ms);
  EXPECT_EQ(random.asked, 0);
}

TEST(retry_jitter, has_fractions_from_zero_to_below_one) {
  fixed_random none(0), most(largest);
  EXPECT_EQ(fraction(none), 0);
  EXPECT_LT(fraction(most), 1);
  EXPECT_GT(fraction(most), 0.999'999);
}

}  // namespace
}  // namespace settle::retry
