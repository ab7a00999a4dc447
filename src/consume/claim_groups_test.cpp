#include "consume/claim_groups.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace settle::consume {
namespace {

using places = std::vector<std::size_t>;
using groups = std::vector<places>;

struct claim_groups : ::testing::Test {
  std::deque<work> messages;
  std::vector<work*> all;
  std::vector<std::string_view> keys;

  void add(std::string_view key, std::string type = "placed", std::string topic = "orders") {
    auto& one = messages.emplace_back();
    one.content.content.type = std::move(type);
    one.content.content.topic = std::move(topic);
    all.push_back(&one);
    keys.push_back(key);
  }
  groups of(places wanted) const { return claim_groups_of(all, keys, std::move(wanted)); }
};

TEST_F(claim_groups, of_nothing_are_none) { EXPECT_TRUE(of({}).empty()); }

TEST_F(claim_groups, of_one_kind_are_one_in_the_order_of_the_keys) {
  for (const auto* key : {"b", "c", "a"}) add(key);
  EXPECT_EQ(of({0, 1, 2}), (groups{{2, 0, 1}}));
}

TEST_F(claim_groups, hold_only_what_is_wanted) {
  for (const auto* key : {"a", "b", "c"}) add(key);
  EXPECT_EQ(of({0, 2}), (groups{{0, 2}}));
}

TEST_F(claim_groups, have_one_topic_and_type_each_and_the_same_order_everywhere) {
  add("a", "placed", "orders");
  add("b", "paid", "orders");
  add("c", "placed", "carts");
  add("A", "placed", "orders");
  EXPECT_EQ(of({0, 1, 2, 3}), (groups{{2}, {1}, {3, 0}})) << "by topic, type and key";
  std::ranges::reverse(all);
  std::ranges::reverse(keys);
  EXPECT_EQ(of({0, 1, 2, 3}), (groups{{1}, {2}, {0, 3}}))
      << "the same messages, delivered the other way round";
}

TEST_F(claim_groups, keep_the_order_of_arrival_of_two_with_one_key) {
  for (const auto* key : {"b", "a", "a"}) add(key);
  EXPECT_EQ(of({0, 1, 2}), (groups{{1, 2, 0}}));
}

struct answers_to_claims : claim_groups {
  std::vector<verdict> what;

  // The answer names the keys of `fresh`, if any, and counts `affected`.
  bool judge(std::vector<std::string> fresh, std::int64_t affected) {
    what.assign(all.size(), verdict::ignore);
    places group;
    for (std::size_t i = 0; i < all.size(); ++i) group.push_back(i);
    std::vector<value> cells;
    for (auto& key : fresh) cells.emplace_back(std::move(key));
    return judge_claims(group, keys, result(std::move(cells), 1, affected), what);
  }
};

// Proves C1
TEST_F(answers_to_claims, that_count_all_let_all_run) {
  add("a");
  add("b");
  EXPECT_TRUE(judge({}, 2));
  EXPECT_EQ(what, (std::vector{verdict::run, verdict::run}));
}

// Proves C5
TEST_F(answers_to_claims, that_count_none_are_duplicates_all) {
  add("a");
  add("b");
  EXPECT_TRUE(judge({}, 0));
  EXPECT_EQ(what, (std::vector{verdict::duplicate, verdict::duplicate}));
}

// Proves C5
TEST_F(answers_to_claims, that_name_some_let_these_run) {
  add("a");
  add("b");
  EXPECT_TRUE(judge({"b"}, 1));
  EXPECT_EQ(what, (std::vector{verdict::duplicate, verdict::run}));
}

// Proves C5
TEST_F(answers_to_claims, give_the_first_of_two_copies_in_a_batch_the_claim) {
  add("a");
  add("a");
  add("b");
  EXPECT_TRUE(judge({"a", "b"}, 2));
  EXPECT_EQ(what, (std::vector{verdict::run, verdict::duplicate, verdict::run}));
}

TEST_F(answers_to_claims, that_count_some_and_name_none_have_to_be_asked_for_again) {
  add("a");
  add("b");
  EXPECT_FALSE(judge({}, 1));
  EXPECT_EQ(what, (std::vector{verdict::ignore, verdict::ignore})) << "nothing is decided";
}

}  // namespace
}  // namespace settle::consume
