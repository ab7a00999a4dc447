#include "consume/unacknowledged.hpp"

#include <gtest/gtest.h>

namespace settle::consume {
namespace {

using namespace std::chrono_literals;

constexpr timestamp noon{1'000'000s};

struct unacknowledged_work : ::testing::Test {
  unacknowledged kept{2};  // messages per batch
  std::vector<work> messages = std::vector<work>(2 * unacknowledged::batches_max);

  void SetUp() override {
    for (std::size_t i = 0; i < messages.size(); ++i) messages[i].content.tag.number = i;
  }
  std::vector<work*> first(std::size_t count) {
    std::vector<work*> found;
    for (std::size_t i = 0; i < count; ++i) found.push_back(&messages[i]);
    return found;
  }
};

// Proves C1
TEST_F(unacknowledged_work, is_taken_once_and_in_the_order_of_its_commits) {
  kept.add(first(2), noon);
  kept.add(std::vector<work*>{&messages[7]}, noon);
  const auto tags = kept.take();
  ASSERT_EQ(tags.size(), 3u);
  EXPECT_EQ(tags[1].number, 1u);
  EXPECT_EQ(tags[2].number, 7u);
  EXPECT_TRUE(kept.empty());
  EXPECT_TRUE(kept.take().empty());
}

TEST_F(unacknowledged_work, can_wait_while_it_is_little_and_young) {
  kept.add(first(messages.size() - 1), noon);
  EXPECT_FALSE(kept.is_time(noon + 199ms));
}

TEST_F(unacknowledged_work, does_not_wait_when_it_is_many_batches) {
  kept.add(first(messages.size()), noon);
  EXPECT_TRUE(kept.is_time(noon));
}

TEST_F(unacknowledged_work, is_as_old_as_its_first_message) {
  kept.add(first(1), noon);
  kept.add(first(1), noon + 150ms);
  EXPECT_TRUE(kept.is_time(noon + 200ms));
}

TEST_F(unacknowledged_work, is_young_again_after_it_was_taken) {
  kept.add(first(1), noon);
  kept.take();
  kept.add(first(1), noon + 1s);
  EXPECT_FALSE(kept.is_time(noon + 1s));
}

}  // namespace
}  // namespace settle::consume
