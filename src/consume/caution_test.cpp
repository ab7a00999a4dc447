#include "consume/caution.hpp"

#include <gtest/gtest.h>

namespace settle::consume {
namespace {

// Proves C9
TEST(caution, is_spent_message_by_message) {
  caution careful;
  careful.begin(1, 2);
  EXPECT_TRUE(careful.spend(1));
  EXPECT_TRUE(careful.spend(1));
  EXPECT_FALSE(careful.spend(1)) << "there were two";
}

TEST(caution, is_about_one_partition) {
  caution careful;
  careful.begin(1, 1);
  EXPECT_FALSE(careful.lasts(2));
  EXPECT_FALSE(careful.spend(2));
  EXPECT_TRUE(careful.spend(1));
}

// Proves C9
TEST(caution, lasts_after_its_messages_are_spent_because_a_replay_may_still_come) {
  caution careful;
  careful.begin(1, 1);
  careful.spend(1);
  EXPECT_TRUE(careful.lasts(1));
}

TEST(caution, begins_anew_with_another_owner_that_ended_without_a_word) {
  caution careful;
  careful.begin(1, 1);
  careful.spend(1);
  careful.begin(1, 1);
  EXPECT_TRUE(careful.spend(1));
}

TEST(caution, ends_with_its_partition_or_everywhere) {
  caution careful;
  for (std::uint32_t partition = 1; partition <= 3; ++partition) careful.begin(partition, 1);
  careful.end(2);
  EXPECT_FALSE(careful.lasts(2));
  EXPECT_TRUE(careful.lasts(3));
  careful.end_all();
  EXPECT_FALSE(careful.lasts(1));
  EXPECT_FALSE(careful.spend(3));
}

TEST(caution, of_a_copy_leaves_the_original_as_it_is) {
  caution careful;
  careful.begin(1, 1);
  auto planned = careful;
  EXPECT_TRUE(planned.spend(1));
  EXPECT_TRUE(careful.spend(1));
}

}  // namespace
}  // namespace settle::consume
