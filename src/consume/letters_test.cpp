#include "consume/letters.hpp"

#include <gtest/gtest.h>

namespace settle::consume {
namespace {

using namespace std::chrono_literals;

constexpr timestamp noon{1'000'000s};

struct letters : ::testing::Test {
  consumer_options options{.name = "warehouse", .version = "7"};
  work one;

  letters() {
    one.content.content.id = "m1";
    one.content.content.key = "order-1";
    one.content.at = log_position::of(12);
  }
  dead_letter letter(dead_letter_reason why = dead_letter_reason::exhausted) const {
    return letter_of(one, why, {options, noon, "orders/3"});
  }
  void was_parked() {
    one.parked.emplace();
    one.parked->attempts = 2;
    one.parked->history = {{noon - 2s, failure_class::poison, "first"},
                           {noon - 1s, failure_class::poison, "second"}};
    one.parked->position = "34";
  }
};

// Proves C3
TEST_F(letters, say_who_gave_up_what_and_when) {
  const auto made = letter();
  EXPECT_EQ(made.consumer, "warehouse");
  EXPECT_EQ(made.consumer_version, "7");
  EXPECT_EQ(made.reason, dead_letter_reason::exhausted);
  EXPECT_EQ(made.failed_at, noon);
  EXPECT_EQ(made.what.id, "m1");
  EXPECT_EQ(made.log, "orders/3");
  EXPECT_EQ(made.position, "12");
}

// Proves C3
TEST_F(letters, of_a_message_that_failed_once_have_that_failure) {
  one.charge = failed_attempt{noon, failure_class::permanent, "no such article"};
  const auto made = letter(dead_letter_reason::permanent);
  EXPECT_EQ(made.attempts, 1);
  EXPECT_EQ(made.error, "no such article");
  ASSERT_EQ(made.history.size(), 1u);
  EXPECT_EQ(made.history[0].why, failure_class::permanent);
}

// Proves C3
TEST_F(letters, of_a_message_that_waited_have_all_its_failures_and_its_old_position) {
  was_parked();
  one.charge = failed_attempt{noon, failure_class::poison, "third"};
  const auto made = letter();
  EXPECT_EQ(made.attempts, 3);
  EXPECT_EQ(made.history.size(), 3u);
  EXPECT_EQ(made.error, "third");
  EXPECT_EQ(made.position, "34");
}

TEST_F(letters, block_the_key_only_where_the_options_say_so_and_there_is_one) {
  EXPECT_FALSE(letter().blocks_key);
  options.on_exhausted = on_exhausted::block_key;
  EXPECT_TRUE(letter().blocks_key);
  one.content.content.key.clear();
  EXPECT_FALSE(letter().blocks_key);
}

// Proves C10
TEST_F(letters, of_late_copies_count_no_attempt_and_block_nobody) {
  options.on_exhausted = on_exhausted::block_key;
  const auto made = letter_beyond_horizon(one, {options, noon, "orders/3"});
  EXPECT_EQ(made.reason, dead_letter_reason::beyond_dedup_horizon);
  EXPECT_EQ(made.attempts, 0);
  EXPECT_TRUE(made.history.empty());
  EXPECT_FALSE(made.blocks_key);
  EXPECT_NE(made.error.find("Replay it only if it has not"), std::string::npos);
}

}  // namespace
}  // namespace settle::consume
