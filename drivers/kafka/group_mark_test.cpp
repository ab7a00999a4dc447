#include "kafka/group_mark.hpp"

#include <gtest/gtest.h>

namespace settle::inline v0::kafka {
namespace {

TEST(kafka_mark, is_told_from_what_others_write_beside_offsets) {
  const auto mark = make_mark(0x12ab);
  EXPECT_EQ(mark, "settle:00000000000012ab");
  EXPECT_TRUE(is_mark(mark));
  for (const auto* other : {"", "settle:", "settle:12", "something else, 23 long"})
    EXPECT_FALSE(is_mark(other)) << other;
  EXPECT_EQ(log_name("orders", 3, mark), "kafka/orders/3/00000000000012ab");
}

// Proves C2: no silent reset
TEST(kafka_start, is_where_the_group_was_if_the_log_has_that) {
  for (const std::int64_t offset : {10, 15, 20}) {
    const auto found = start_at(offset, {10, 20});
    EXPECT_EQ(found.offset, offset);
    EXPECT_FALSE(found.has_gap()) << offset;
  }
}

TEST(kafka_start, is_behind_a_gap_where_retention_was_faster) {
  const auto found = start_at(4, {10, 20});
  EXPECT_TRUE(found.has_gap());
  EXPECT_EQ(found.offset, 10);
  EXPECT_EQ(found.missing_from, 4);
  EXPECT_EQ(found.missing_up_to, 10);
  EXPECT_FALSE(found.is_other_log);
}

TEST(kafka_start, is_the_beginning_of_another_log_where_this_one_ends_too_early) {
  const auto found = start_at(21, {0, 20});
  EXPECT_TRUE(found.has_gap());
  EXPECT_TRUE(found.is_other_log);
  EXPECT_EQ(found.offset, 0);
}

}  // namespace
}  // namespace settle::inline v0::kafka
