#include "consume/charge.hpp"

#include <gtest/gtest.h>

namespace settle::consume {
namespace {

using namespace std::chrono_literals;

const timestamp first{1'000s};

judgement after(failure_class why, std::int64_t attempts, duration age = 0s) {
  return judge({.name = "c"}, why, attempts, first, first + age);
}

// Proves C3
TEST(judge, gives_up_a_permanent_failure_at_once) {
  EXPECT_EQ(after(failure_class::permanent, 1).give_up, dead_letter_reason::permanent);
}

// Proves C3
TEST(judge, gives_up_poison_after_five_attempts_however_quickly_they_come) {
  for (const auto& [attempts, wait] : {std::pair{1, 100ms}, {2, 400ms}, {3, 900ms}, {4, 1600ms}}) {
    EXPECT_EQ(after(failure_class::poison, attempts, 24h * 365).give_up, std::nullopt);
    EXPECT_EQ(after(failure_class::poison, attempts).wait, wait);
  }
  EXPECT_EQ(after(failure_class::poison, 5).give_up, dead_letter_reason::exhausted);
}

// Proves C3
TEST(judge, gives_up_what_will_pass_by_age_alone) {
  for (const auto why : {failure_class::transient, failure_class::outage}) {
    EXPECT_EQ(after(why, 1'000, 24h - 1us).give_up, std::nullopt);
    EXPECT_EQ(after(why, 1'000, 24h - 1us).wait, 30s) << "the longest";
    EXPECT_EQ(after(why, 2, 24h).give_up, dead_letter_reason::too_old);
  }
}

}  // namespace
}  // namespace settle::consume
