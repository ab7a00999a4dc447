#include "consume/parked_chunks.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace settle::consume {
namespace {

using names = std::vector<std::string>;

struct chunks_of_parked_messages : ::testing::Test {
  std::deque<work> messages;
  std::vector<work*> all;

  work& add(std::string id, std::string key = "") {
    auto& one = messages.emplace_back();
    one.content.content.id = std::move(id);
    one.content.content.key = std::move(key);
    one.content.content.topic = "orders";
    all.push_back(&one);
    return one;
  }
  parked_chunks chunks() const {
    return {all, [](const message& m) { return m.id.starts_with("alone"); }};
  }
  static names ids(const std::vector<work*>& of) {
    names found;
    for (const auto* one : of) found.push_back(one->what().id);
    return found;
  }
};

TEST_F(chunks_of_parked_messages, end_after_the_last_message) {
  auto made = chunks();
  EXPECT_TRUE(made.next(8).empty());
  add("1");
  auto others = chunks();
  EXPECT_EQ(ids(others.next(8)), names{"1"});
  EXPECT_TRUE(others.next(8).empty());
}

TEST_F(chunks_of_parked_messages, are_as_large_as_asked_for_each_time) {
  for (const auto* id : {"1", "2", "3", "4"}) add(id);
  auto made = chunks();
  EXPECT_EQ(ids(made.next(1)), names{"1"});
  EXPECT_EQ(ids(made.next(2)), (names{"2", "3"}));
  EXPECT_EQ(ids(made.next(4)), names{"4"});
}

TEST_F(chunks_of_parked_messages, leave_a_message_that_shares_with_nobody_alone) {
  for (const auto* id : {"1", "alone 2", "alone 3", "4", "5"}) add(id);
  auto made = chunks();
  EXPECT_EQ(ids(made.next(8)), names{"1"});
  EXPECT_EQ(ids(made.next(8)), names{"alone 2"});
  EXPECT_EQ(ids(made.next(8)), names{"alone 3"});
  EXPECT_EQ(ids(made.next(8)), (names{"4", "5"}));
}

// Proves C8
TEST_F(chunks_of_parked_messages, pass_over_what_is_behind_a_message_that_is_not_done) {
  auto& first = add("1", "a");
  add("2", "a");
  add("3", "b");
  auto made = chunks();
  EXPECT_EQ(ids(made.next(1)), names{"1"});
  made.hold_key_of(first);
  EXPECT_EQ(ids(made.next(2)), names{"3"});
}

// Proves C8
TEST_F(chunks_of_parked_messages, go_on_after_places_that_are_all_held) {
  auto& first = add("1", "a");
  add("2", "a");
  add("3", "a");
  add("4", "b");
  auto made = chunks();
  made.next(1);
  made.hold_key_of(first);
  EXPECT_EQ(ids(made.next(1)), names{"4"});
}

TEST_F(chunks_of_parked_messages, hold_nobody_behind_a_message_without_a_key) {
  auto& first = add("1");
  add("2");
  auto made = chunks();
  made.next(1);
  made.hold_key_of(first);
  EXPECT_EQ(ids(made.next(1)), names{"2"});
}

}  // namespace
}  // namespace settle::consume
