#include "consume/handler_pace.hpp"

#include <gtest/gtest.h>

namespace settle::consume {
namespace {

using namespace std::chrono_literals;

TEST(handler_pace, of_handlers_that_nobody_has_seen_limits_nothing) {
  EXPECT_EQ(handler_pace().batch_limit(20ms, 64), 64u);
}

TEST(handler_pace, makes_batches_last_about_as_long_as_asked_for) {
  handler_pace pace;
  pace.note(20ms, 10);
  EXPECT_EQ(pace.batch_limit(20ms, 64), 10u);
  EXPECT_EQ(pace.batch_limit(40ms, 64), 20u);
}

TEST(handler_pace, leaves_one_message_to_the_slowest_handlers) {
  handler_pace pace;
  pace.note(10s, 1);
  EXPECT_EQ(pace.batch_limit(20ms, 64), 1u);
}

TEST(handler_pace, of_fast_handlers_is_limited_by_the_options) {
  handler_pace pace;
  pace.note(1us, 1'000'000);
  EXPECT_EQ(pace.batch_limit(20ms, 64), 64u);
}

TEST(handler_pace, follows_handlers_that_change_slowly) {
  handler_pace pace;
  pace.note(1ms, 1);
  pace.note(11ms, 1);
  EXPECT_EQ(pace.batch_limit(30ms, 64), 10u) << "a fifth of the difference: 3 ms";
}

TEST(handler_pace, learns_nothing_from_a_batch_without_handlers) {
  handler_pace pace;
  pace.note(1h, 0);
  EXPECT_EQ(pace.batch_limit(20ms, 64), 64u);
}

}  // namespace
}  // namespace settle::consume
