#include "rabbitmq/unacknowledged.hpp"

#include <gtest/gtest.h>

#include <string>

namespace settle::rabbitmq {
namespace {

std::string said(unacknowledged& by, std::vector<std::uint64_t> tags) {
  std::string all;
  for (const auto& one : by.done(std::move(tags)))
    all += std::to_string(one.tag) + (one.and_all_before ? "* " : " ");
  return all;
}

unacknowledged delivered(std::initializer_list<std::uint64_t> tags) {
  unacknowledged made;
  for (const auto tag : tags) made.delivered(tag);
  return made;
}

TEST(rabbitmq_acknowledgements, of_all_from_the_first_on_are_one_word) {
  auto session = delivered({1, 2, 3, 5});
  EXPECT_EQ(said(session, {3, 1, 2}), "3* ");
  EXPECT_EQ(said(session, {5}), "5* ");
}

TEST(rabbitmq_acknowledgements, over_a_gap_are_said_one_by_one) {
  auto session = delivered({1, 2, 3, 4, 5});
  EXPECT_EQ(said(session, {4, 1, 3}), "1* 3 4 ");
  EXPECT_EQ(said(session, {2}), "2* ");
  EXPECT_EQ(said(session, {5}), "5* ");
}

// The server closes a channel over a tag that it does not know.
TEST(rabbitmq_acknowledgements, are_said_once) {
  auto session = delivered({1, 2, 3});
  EXPECT_EQ(said(session, {1, 1}), "1* ");
  EXPECT_EQ(said(session, {1, 3}), "3 ");
  EXPECT_EQ(said(session, {1, 3, 7}), "");
  EXPECT_EQ(said(session, {1, 2, 3}), "2* ");
  EXPECT_EQ(said(session, {}), "");
}

}  // namespace
}  // namespace settle::rabbitmq
