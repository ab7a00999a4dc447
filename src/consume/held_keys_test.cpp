#include "consume/held_keys.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace settle::consume {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

constexpr timestamp noon{1'000'000s};

struct keys_of_others : ::testing::Test {
  held_keys known;
  std::deque<work> messages;
  std::vector<work*> all;

  work& add(std::string key, std::string topic = "orders") {
    auto& one = messages.emplace_back();
    one.content.content.key = std::move(key);
    one.content.content.topic = std::move(topic);
    all.push_back(&one);
    return one;
  }
  names overdue(timestamp now) {
    names found;
    known.for_overdue(now, 10s,
                      [&](const auto& topic, const auto& key) { found.push_back(topic + "/" + key); });
    return found;
  }
};

// Proves C8
TEST_F(keys_of_others, keep_all_messages_of_theirs_and_no_other) {
  auto& first = add("a");
  add("b");
  auto& second = add("a");
  add("a", "carts");
  EXPECT_EQ(known.note(all, {{"orders", "a"}}, noon), (std::vector<work*>{&first, &second}));
  EXPECT_FALSE(known.none_known());
}

TEST_F(keys_of_others, are_overdue_after_a_while_from_the_first_time_that_they_were_seen) {
  add("a");
  known.note(all, {{"orders", "a"}}, noon);
  known.note(all, {{"orders", "a"}}, noon + 9s);
  EXPECT_EQ(overdue(noon + 9s), names{});
  EXPECT_EQ(overdue(noon + 10s), names{"orders/a"});
}

TEST_F(keys_of_others, are_overdue_once_and_then_only_after_as_long_again) {
  add("a");
  known.note(all, {{"orders", "a"}}, noon);
  overdue(noon + 10s);
  EXPECT_EQ(overdue(noon + 19s), names{});
  EXPECT_EQ(overdue(noon + 20s), names{"orders/a"});
}

TEST_F(keys_of_others, are_not_theirs_any_more_when_a_look_finds_them_free) {
  add("a");
  known.note(all, {{"orders", "a"}}, noon);
  EXPECT_TRUE(known.note(all, {}, noon + 1s).empty());
  EXPECT_TRUE(known.none_known());
}

TEST_F(keys_of_others, stay_known_while_nobody_looks_at_them) {
  add("a");
  known.note(all, {{"orders", "a"}}, noon);
  auto& other = add("b");
  const std::vector<work*> next{&other};
  known.note(next, {}, noon + 1s);
  EXPECT_EQ(overdue(noon + 10s), names{"orders/a"});
}

TEST_F(keys_of_others, are_forgotten_with_the_partitions) {
  add("a");
  known.note(all, {{"orders", "a"}}, noon);
  known.forget();
  EXPECT_TRUE(known.none_known());
  EXPECT_EQ(overdue(noon + 1h), names{});
}

}  // namespace
}  // namespace settle::consume
