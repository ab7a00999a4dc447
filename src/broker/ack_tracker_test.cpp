#include "broker/ack_tracker.hpp"

#include <gtest/gtest.h>

namespace settle {
namespace {

TEST(ack_tracker, begins_where_the_group_had_come_to) {
  const ack_tracker fresh(7);
  EXPECT_EQ(fresh.done_through(), 7);
  EXPECT_EQ(fresh.delivered_through(), 7);
  EXPECT_FALSE(fresh.has_news());
}

// Proves C4
TEST(ack_tracker, nothing_is_done_by_being_delivered) {
  ack_tracker t(7);
  t.delivered(9);
  t.delivered(12);
  EXPECT_EQ(t.delivered_through(), 12);
  EXPECT_LT(t.done_through(), 9);
}

// Proves C4
TEST(ack_tracker, moves_only_over_what_is_done_without_a_gap) {
  ack_tracker t(0);
  for (const int position : {10, 20, 30, 40}) t.delivered(position);
  t.done(20);
  t.done(40);
  EXPECT_LT(t.done_through(), 10);
  t.done(10);
  EXPECT_GE(t.done_through(), 20);
  EXPECT_LT(t.done_through(), 30);
  t.done(30);
  EXPECT_EQ(t.done_through(), 40);
}

TEST(ack_tracker, has_news_until_they_are_committed) {
  ack_tracker t(0);
  t.delivered(10);
  t.done(10);
  ASSERT_TRUE(t.has_news());
  t.committed(t.done_through());
  EXPECT_FALSE(t.has_news());
  t.delivered(11);
  EXPECT_FALSE(t.has_news());
  t.done(11);
  EXPECT_TRUE(t.has_news());
}

// The positions in between belong to other partitions.
TEST(ack_tracker, a_gap_before_the_next_delivery_is_no_news) {
  ack_tracker t(0);
  t.delivered(10);
  t.done(10);
  t.committed(t.done_through());
  t.delivered(20);
  EXPECT_FALSE(t.has_news());
  EXPECT_EQ(t.done_through(), 10);
}

TEST(ack_tracker, takes_the_same_position_any_number_of_times) {
  ack_tracker t(0);
  t.delivered(1);
  t.delivered(2);
  t.done(1);
  t.done(1);
  t.done(99);  // never delivered here
  EXPECT_EQ(t.done_through(), 1);
}

}  // namespace
}  // namespace settle
