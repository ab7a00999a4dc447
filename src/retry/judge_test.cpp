#include "retry/judge.hpp"

#include <gtest/gtest.h>

#include "retry/crashes.hpp"

namespace settle::retry {
namespace {

using namespace std::chrono_literals;

constexpr auto outage_class = failure_class::outage;
constexpr auto transient = failure_class::transient;
constexpr auto permanent = failure_class::permanent;
constexpr auto poison = failure_class::poison;

const policy usual{.passing_max_age = 24h};

// So many failures of one class.
judgement after(failure_class why, int failures, duration age = 0s) {
  tally failed;
  for (int i = 0; i < failures; ++i) failed = failed.after(why);
  return judge(usual, why, failed, age);
}

TEST(retry_tally, counts_every_failure_and_charges_those_that_are_not_expected_to_pass) {
  EXPECT_EQ(tally().after(poison), (tally{.attempts = 1, .charged = 1}));
  EXPECT_EQ(tally().after(permanent), (tally{.attempts = 1, .charged = 1}));
  EXPECT_EQ(tally().after(transient), (tally{.attempts = 1}));
  EXPECT_EQ(tally().after(outage_class), (tally{.attempts = 1}));
  const tally crashed{.attempts = 5, .charged = 2, .crashes = 1};
  EXPECT_EQ(crashed.after(poison), (tally{.attempts = 6, .charged = 3, .crashes = 1}));
}

// Proves C3
TEST(retry_judge, gives_up_a_permanent_failure_at_once) {
  EXPECT_EQ(after(permanent, 1).give_up, dead_letter_reason::permanent);
}

// Proves C3
TEST(retry_judge, gives_up_poison_after_five_attempts_however_quickly_they_come) {
  for (const auto& [attempts, wait] : {std::pair{1, 100ms}, {2, 400ms}, {3, 900ms}, {4, 1600ms}}) {
    EXPECT_EQ(after(poison, attempts, 24h * 365).give_up, std::nullopt);
    EXPECT_EQ(after(poison, attempts).wait, wait);
  }
  EXPECT_EQ(after(poison, 5).give_up, dead_letter_reason::exhausted);
}

// Proves C3
TEST(retry_judge, gives_up_what_will_pass_by_age_alone) {
  for (const auto why : {transient, outage_class}) {
    EXPECT_EQ(after(why, 1'000, 24h - 1us).give_up, std::nullopt);
    EXPECT_EQ(after(why, 1'000, 24h - 1us).wait, 30s) << "the longest";
    EXPECT_EQ(after(why, 2, 24h).give_up, dead_letter_reason::too_old);
  }
}

// Proves C3
TEST(retry_judge, charges_nothing_for_what_has_passed_meanwhile_but_the_pauses_have_grown) {
  tally failed;
  for (int i = 0; i < 7; ++i) failed = failed.after(i % 2 == 0 ? transient : outage_class);
  for (const auto wait : {6400ms, 8100ms, 10'000ms, 12'100ms}) {
    failed = failed.after(poison);
    EXPECT_EQ(judge(usual, poison, failed, 0s).give_up, std::nullopt);
    EXPECT_EQ(judge(usual, poison, failed, 0s).wait, wait);
  }
  EXPECT_EQ(judge(usual, poison, failed.after(poison), 0s).give_up, dead_letter_reason::exhausted);
}

TEST(retry_judge, charges_nothing_for_a_failure_that_should_pass_although_all_attempts_but_one_are_used) {
  const tally failed{.attempts = 4, .charged = 4};
  EXPECT_EQ(judge(usual, transient, failed.after(transient), 0s).give_up, std::nullopt);
}

// Proves C9
TEST(retry_judge, gives_up_whatever_has_ended_three_processes) {
  for (const auto why : {outage_class, transient, permanent, poison}) {
    EXPECT_NE(judge(usual, why, {.attempts = 1, .crashes = 2}, 0s).give_up,
              dead_letter_reason::crashed_process);
    EXPECT_EQ(judge(usual, why, {.attempts = 1, .crashes = 3}, 0s).give_up,
              dead_letter_reason::crashed_process);
  }
}

TEST(retry_judge, has_no_age_limit_unless_a_policy_names_one) {
  const policy plain;
  EXPECT_EQ(judge(plain, transient, {.attempts = 9}, 24h * 365 * 100).give_up, std::nullopt);
}

TEST(retry_judge, follows_the_policy_of_whoever_asks) {
  const policy patient{.pauses = {1s, 5s}, .attempts_max = 20};
  EXPECT_EQ(judge(patient, poison, {.attempts = 2, .charged = 2}, 0s).wait, 4s);
  EXPECT_EQ(judge(patient, poison, {.attempts = 19, .charged = 19}, 0s).wait, 5s);
  EXPECT_EQ(judge(patient, poison, {.attempts = 19, .charged = 19}, 0s).give_up, std::nullopt);
  EXPECT_EQ(judge(patient, poison, {.attempts = 20, .charged = 20}, 0s).give_up,
            dead_letter_reason::exhausted);
}

// Proves O3
TEST(retry_judge, counts_each_rejection_by_a_destination_as_an_attempt) {
  const policy by{.pauses = {.longest = 1s}, .attempts_max = 4};
  EXPECT_EQ(judge_rejection(by, 1).wait, 100ms);
  EXPECT_EQ(judge_rejection(by, 3).wait, 900ms);
  EXPECT_EQ(judge_rejection(by, 3).give_up, std::nullopt);
  EXPECT_EQ(judge_rejection(by, 4).give_up, dead_letter_reason::exhausted);
  EXPECT_EQ(judge_rejection({.pauses = {.longest = 1s}, .attempts_max = 9}, 8).wait, 1s);
}

TEST(retry_aging, begins_with_the_first_failure) {
  const timestamp first{100s}, now{200s};
  EXPECT_EQ(ages_from({}, transient, now), now);
  EXPECT_EQ(ages_from({first, first, {}}, transient, now), first);
  EXPECT_EQ(ages_from({first, first, {}}, poison, now), first);
  EXPECT_EQ(ages_from({first, std::nullopt, {}}, outage_class, now), first);
}

// Proves C3
TEST(retry_aging, does_not_count_the_time_in_which_nobody_got_through) {
  const timestamp first{100s}, last{150s}, now{200s};
  EXPECT_EQ(ages_from({first, last, last}, outage_class, now), now) << "the success was before it failed";
  EXPECT_EQ(ages_from({first, last, last + 1s}, outage_class, now), first) << "it is alone with it";
}

TEST(retry_crashes, are_enough_after_three_and_say_so) {
  EXPECT_FALSE(has_crashed_enough(0));
  EXPECT_FALSE(has_crashed_enough(2));
  EXPECT_TRUE(has_crashed_enough(3));
  EXPECT_TRUE(has_crashed_enough(4));
  const auto charged = charge_for_crashes(3, timestamp(7s));
  EXPECT_EQ(charged.at, timestamp(7s));
  EXPECT_EQ(charged.why, poison);
  EXPECT_EQ(charged.error, "3 processes ended while it ran");
}

}  // namespace
}  // namespace settle::retry
