#include "consume/plan.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace settle::consume {
namespace {

using namespace std::chrono_literals;
using verdicts = std::vector<verdict>;

constexpr timestamp noon{1'000'000s};

// A batch whose claims are all new, unless a test says otherwise.
struct plans : ::testing::Test {
  consumer_options options{.name = "c"};
  std::deque<work> messages;
  std::vector<work*> all;
  facts known;
  plan made;

  work& add(std::string key, std::uint32_t partition = 0) {
    auto& one = messages.emplace_back();
    one.content.content.id = "m" + std::to_string(messages.size());
    one.content.content.key = std::move(key);
    one.content.content.topic = "orders";
    one.content.tag.partition = partition;
    all.push_back(&one);
    return one;
  }
  void fails(work& one, failure_class why = failure_class::poison) {
    one.charge = failed_attempt{noon, why, "no"};
  }
  judging by() const { return {options, noon}; }
  void all_run() { made.what.assign(all.size(), verdict::run); }

  verdicts judge() {
    all_run();
    std::vector<std::size_t> fresh;
    for (std::size_t i = 0; i < all.size(); ++i) fresh.push_back(i);
    known.beyond.resize(all.size(), false);
    made.judge_fresh(all, fresh, known, by());
    return made.what;
  }
};

TEST_F(plans, let_messages_run_that_nothing_speaks_against) {
  add("a");
  add("");
  EXPECT_EQ(judge(), (verdicts{verdict::run, verdict::run}));
  EXPECT_TRUE(made.has_to_run());
}

TEST_F(plans, judge_only_messages_whose_claims_are_new) {
  fails(add("a"));
  fails(add("b"));
  made.what = {verdict::duplicate, verdict::run};
  known.beyond = {false};
  const std::vector<std::size_t> fresh{1};
  made.judge_fresh(all, fresh, known, by());
  EXPECT_EQ(made.what, (verdicts{verdict::duplicate, verdict::charge}));
  EXPECT_FALSE(messages[0].judged);
}

// Proves C10
TEST_F(plans, never_run_a_message_whose_record_may_have_expired) {
  fails(add("a"));
  add("a");
  known.beyond = {true, false};
  known.waiting = {{"orders", "a"}};
  EXPECT_EQ(judge(), (verdicts{verdict::beyond_horizon, verdict::behind})) << "whatever else is known of it";
}

// Proves C8
TEST_F(plans, park_messages_behind_what_waits_of_their_key) {
  add("a");
  add("b");
  add("");
  known.waiting = {{"orders", "a"}, {"carts", "b"}, {"orders", ""}};
  EXPECT_EQ(judge(), (verdicts{verdict::behind, verdict::run, verdict::run})) << "of their topic and key";
}

// Proves C3, C8
TEST_F(plans, write_a_failure_down_and_park_the_later_ones_of_its_key) {
  add("a");
  fails(add("a"));
  add("b");
  add("a");
  EXPECT_EQ(judge(), (verdicts{verdict::run, verdict::charge, verdict::run, verdict::behind}));
  EXPECT_EQ(messages[1].judged->wait, 100ms);
  EXPECT_FALSE(messages[1].given_up());
}

// Proves C8
TEST_F(plans, park_a_message_that_has_failed_behind_one_that_waits) {
  fails(add("a"));
  known.waiting = {{"orders", "a"}};
  EXPECT_EQ(judge(), verdicts{verdict::behind});
}

// Proves C3
TEST_F(plans, let_a_key_go_on_after_a_message_that_is_given_up_unless_it_is_to_be_blocked) {
  fails(add("a"), failure_class::permanent);
  add("a");
  EXPECT_EQ(judge(), (verdicts{verdict::charge, verdict::run}));
  EXPECT_TRUE(messages[0].given_up());
  options.on_exhausted = on_exhausted::block_key;
  EXPECT_EQ(judge(), (verdicts{verdict::charge, verdict::behind}));
}

// Proves C9
TEST_F(plans, are_careful_with_the_first_messages_after_an_owner_that_died) {
  known.careful.begin(1, 2);
  add("a", 1);
  add("b", 2);
  add("c", 1);
  add("d", 1);
  EXPECT_EQ(judge(), (verdicts{verdict::cautious, verdict::run, verdict::cautious, verdict::run}));
}

// Proves C8, C9
TEST_F(plans, park_later_messages_behind_one_that_they_are_careful_with) {
  add("a").content.redelivered = true;
  add("a");
  add("").content.redelivered = true;
  add("");
  EXPECT_EQ(judge(), (verdicts{verdict::cautious, verdict::behind, verdict::cautious, verdict::run}));
}

TEST_F(plans, spend_no_caution_on_messages_that_do_not_run) {
  known.careful.begin(0, 1);
  fails(add("a"));
  add("b");
  EXPECT_EQ(judge(), (verdicts{verdict::charge, verdict::cautious}));
}

// Proves C8
TEST_F(plans, that_charge_a_message_park_the_later_ones_of_its_key) {
  for (const auto* key : {"a", "a", "b", "a"}) add(key);
  all_run();
  fails(messages[1]);
  made.charge(all, 1, by());
  EXPECT_EQ(made.what, (verdicts{verdict::run, verdict::charge, verdict::run, verdict::behind}));
}

TEST_F(plans, that_charge_a_message_leave_what_was_decided_about_others) {
  for (int i = 0; i < 3; ++i) add("a");
  made.what = {verdict::run, verdict::duplicate, verdict::cautious};
  fails(messages[0]);
  made.charge(all, 0, by());
  EXPECT_EQ(made.what, (verdicts{verdict::charge, verdict::duplicate, verdict::behind}));
}

TEST_F(plans, that_give_a_message_up_park_nobody) {
  for (int i = 0; i < 2; ++i) add("a");
  all_run();
  fails(messages[0], failure_class::permanent);
  made.charge(all, 0, by());
  EXPECT_EQ(made.what, (verdicts{verdict::charge, verdict::run}));
}

// Proves C8
TEST_F(plans, that_leave_a_message_out_leave_the_later_ones_of_its_key_out) {
  for (const auto* key : {"a", "a", "b", "a", "a"}) add(key);
  made.what = {verdict::run, verdict::run, verdict::run, verdict::behind, verdict::duplicate};
  made.leave_out(all, 1);
  EXPECT_EQ(made.what,
            (verdicts{verdict::run, verdict::left_out, verdict::run, verdict::left_out, verdict::duplicate}));
  const auto rest = made.left_out_of(all);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->alone, std::vector<work*>{&messages[1]});
  EXPECT_EQ(rest->behind, std::vector<work*>{&messages[3]});
  EXPECT_FALSE(rest->at);
}

TEST_F(plans, that_leave_a_message_without_a_key_out_leave_nobody_else_out) {
  add("");
  add("");
  all_run();
  made.leave_out(all, 0);
  EXPECT_EQ(made.what, (verdicts{verdict::left_out, verdict::run}));
  EXPECT_TRUE(made.left_out_of(all)->behind.empty());
}

TEST_F(plans, that_leave_everything_out_have_nothing_to_run) {
  add("a");
  all_run();
  made.leave_out(all, 0);
  EXPECT_FALSE(made.has_to_run());
}

TEST_F(plans, that_leave_nobody_out_commit_as_they_are) {
  add("a");
  all_run();
  EXPECT_FALSE(made.left_out_of(all));
}

// Proves C8
TEST_F(plans, hold_a_key_for_what_waits_and_for_nothing_else) {
  auto& one = add("a");
  EXPECT_TRUE(holds_its_key(one, verdict::cautious, options));
  EXPECT_TRUE(holds_its_key(one, verdict::charge, options));
  for (const auto other : {verdict::run, verdict::duplicate, verdict::beyond_horizon, verdict::ignore})
    EXPECT_FALSE(holds_its_key(one, other, options));
  EXPECT_FALSE(holds_its_key(add(""), verdict::cautious, options)) << "it has none";
}

}  // namespace
}  // namespace settle::consume
