#include "consume/handler_run.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>

namespace settle::consume {
namespace {

using verdicts = std::vector<verdict>;
using calls = std::vector<std::pair<std::size_t, std::size_t>>;  // place and number of messages

// A transaction whose handlers do as a test says, by the place of the message; the others work.
struct runs_of_handlers : ::testing::Test, handler_host {
  consumer_options options{.name = "c"};
  std::deque<work> messages;
  std::vector<work*> all;
  plan made;
  calls called;
  std::map<std::size_t, failure_class> fail;  // after it did something
  std::map<std::size_t, failure_class> fail_early;
  std::size_t group = 1;
  bool can_go_back = true;
  int went_back = 0;

  void add(std::initializer_list<std::string> keys) {
    for (const auto& key : keys) {
      messages.emplace_back().content.content.key = key;
      messages.back().content.content.topic = "orders";
      all.push_back(&messages.back());
      made.what.push_back(verdict::run);
    }
  }
  std::optional<failure> run() { return run_handlers(all, made, *this, {options, timestamp{}}); }

  std::size_t together(std::size_t at) const override { return std::min(group, all.size() - at); }
  std::optional<failed_attempt> run(std::size_t at, std::size_t count) override {
    called.emplace_back(at, count);
    for (auto i = at; i < at + count; ++i)
      for (const auto* with : {&fail, &fail_early})
        if (with->contains(i)) return failed_attempt{{}, with->at(i), "no"};
    return std::nullopt;
  }
  bool charge_at_once(std::size_t at, const failed_attempt& how) override {
    if (!fail_early.contains(at)) return false;
    all[at]->charge = how;
    return true;
  }
  bool go_back() override {
    ++went_back;
    return can_go_back;
  }
};

TEST_F(runs_of_handlers, call_each_that_is_to_run_in_order) {
  add({"a", "b", "c"});
  made.what[1] = verdict::duplicate;
  made.what[2] = verdict::replay;
  EXPECT_FALSE(run());
  EXPECT_EQ(called, (calls{{0, 1}, {2, 1}}));
}

TEST_F(runs_of_handlers, call_those_for_whole_batches_once) {
  add({"a", "b", "c"});
  group = 2;
  EXPECT_FALSE(run());
  EXPECT_EQ(called, (calls{{0, 2}, {2, 1}}));
}

TEST_F(runs_of_handlers, that_had_several_messages_do_not_say_which_one_failed) {
  add({"a", "b"});
  group = 2;
  fail[1] = failure_class::poison;
  const auto why = run();
  ASSERT_TRUE(why);
  EXPECT_FALSE(why->at);
  EXPECT_EQ(went_back, 0) << "nobody knows whom to leave out";
}

// Proves C3, C8
TEST_F(runs_of_handlers, that_fail_before_they_did_anything_are_charged_and_the_batch_goes_on) {
  add({"a", "a", "b"});
  fail_early[0] = failure_class::poison;
  EXPECT_FALSE(run());
  EXPECT_EQ(called, (calls{{0, 1}, {2, 1}}));
  EXPECT_EQ(made.what, (verdicts{verdict::charge, verdict::behind, verdict::run}));
}

// Proves C8
TEST_F(runs_of_handlers, that_fail_later_are_left_out_and_the_others_run_again) {
  add({"a", "b", "a", "c"});
  fail[0] = failure_class::poison;
  EXPECT_FALSE(run());
  EXPECT_EQ(called, (calls{{0, 1}, {1, 1}, {3, 1}}));
  EXPECT_EQ(made.what, (verdicts{verdict::left_out, verdict::run, verdict::left_out, verdict::run}));
  EXPECT_EQ(went_back, 1);
}

TEST_F(runs_of_handlers, that_cannot_be_taken_back_roll_the_batch_back) {
  add({"a", "b"});
  fail[1] = failure_class::poison;
  can_go_back = false;
  const auto why = run();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->at, 1u);
  EXPECT_FALSE(why->several);
}

// Proves C3
TEST_F(runs_of_handlers, that_find_something_away_roll_the_batch_back) {
  add({"a", "b"});
  fail[0] = failure_class::outage;
  EXPECT_EQ(run()->how.why, failure_class::outage);
  EXPECT_EQ(went_back, 0) << "the others would meet it too";
}

TEST_F(runs_of_handlers, of_replays_that_fail_roll_them_back) {
  add({"a"});
  made.what[0] = verdict::replay;
  fail_early[0] = failure_class::poison;
  EXPECT_EQ(run()->at, 0u);
  EXPECT_FALSE(messages[0].charge);
}

TEST_F(runs_of_handlers, that_fail_one_after_another_roll_the_batch_back_after_a_few) {
  add({"a", "b", "c", "d", "e"});
  for (std::size_t i = 0; i <= left_out_max; ++i) fail[i] = failure_class::poison;
  const auto why = run();
  ASSERT_TRUE(why);
  EXPECT_TRUE(why->several);
  EXPECT_EQ(went_back, 3);
}

TEST_F(runs_of_handlers, that_leave_nothing_to_run_roll_the_batch_back) {
  add({"a", "a"});
  fail[0] = failure_class::poison;
  EXPECT_EQ(run()->at, 0u);
  EXPECT_EQ(went_back, 0);
}

}  // namespace
}  // namespace settle::consume
