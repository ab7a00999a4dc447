#include "consume/splitter.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <set>

namespace settle::consume {
namespace {

using names = std::vector<std::string>;

// Attempts by the ids of their messages, which are "<key><number>": "a1 b2". What a test does not plan
// otherwise commits.
struct split_batches : ::testing::Test, attempt_host {
  std::deque<work> messages;
  std::vector<work*> all;
  names attempts;
  names charged;
  std::set<const work*> done;
  std::function<std::optional<failure>(batch)> outcome = [](batch) { return std::nullopt; };
  bool away = false;
  int held = 0;

  void add(std::initializer_list<std::string> ids) {
    for (const auto& id : ids) {
      auto& one = messages.emplace_back();
      one.content.content.id = id;
      one.content.content.topic = "orders";
      if (id[0] != '-') one.content.content.key = id.substr(0, 1);
      all.push_back(&one);
    }
  }
  void apply() { splitter(*this).apply(all); }

  // The first message of these in a batch fails it.
  void fail(std::set<std::string> bad, failure_class why = failure_class::poison) {
    outcome = [bad = std::move(bad), why](batch tried) -> std::optional<failure> {
      for (std::size_t i = 0; i < tried.size(); ++i)
        if (bad.contains(tried[i]->what().id)) return failure{i, {{}, why, "no"}};
      return std::nullopt;
    };
  }

  std::optional<failure> attempt(batch tried) override {
    std::string ids;
    for (const auto* one : tried) ids += (ids.empty() ? "" : " ") + one->what().id;
    attempts.push_back(ids);
    auto why = outcome(tried);
    const auto left = [&](const std::vector<work*>& of, const work* one) {
      return std::ranges::find(of, one) != of.end();
    };
    for (const auto* one : tried)
      if (!why || (!why->alone.empty() && !left(why->alone, one) && !left(why->behind, one)))
        done.insert(one);
    return why;
  }
  bool may_try() const override { return !away; }
  bool is_done(const work& one) const override { return done.contains(&one); }
  void failed_alone(work& one, const failed_attempt&) override { charged.push_back(one.what().id); }
  void keys_held_elsewhere() override { ++held; }
};

TEST_F(split_batches, that_go_well_are_one_transaction) {
  add({"a1", "b1"});
  apply();
  EXPECT_EQ(attempts, names{"a1 b1"});
}

TEST_F(split_batches, are_not_even_tried_while_something_is_away) {
  add({"a1"});
  away = true;
  apply();
  EXPECT_TRUE(attempts.empty());
}

// Proves C3
TEST_F(split_batches, of_one_message_that_fails_charge_it) {
  add({"a1"});
  fail({"a1"});
  apply();
  EXPECT_EQ(charged, names{"a1"});
}

// Proves C3, C8
TEST_F(split_batches, commit_the_others_first_then_the_bad_one_and_never_what_is_behind_it) {
  add({"a1", "b1", "a2", "c1"});
  fail({"a1"});
  apply();
  EXPECT_EQ(attempts, (names{"a1 b1 a2 c1", "b1 c1", "a1"})) << "a2 waits for a1";
  EXPECT_EQ(charged, names{"a1"});
}

TEST_F(split_batches, go_on_behind_a_message_that_works_when_it_is_alone) {
  add({"a1", "b1", "a2"});
  outcome = [](batch tried) -> std::optional<failure> {
    if (tried.size() == 3) return failure{0, {{}, failure_class::poison, "once"}};
    return std::nullopt;
  };
  apply();
  EXPECT_EQ(attempts, (names{"a1 b1 a2", "b1", "a1", "a2"}));
  EXPECT_TRUE(charged.empty());
}

TEST_F(split_batches, with_a_bad_message_without_a_key_keep_nobody_waiting) {
  add({"-1", "-2", "a1"});
  fail({"-1"});
  apply();
  EXPECT_EQ(attempts, (names{"-1 -2 a1", "-2 a1", "-1"}));
}

TEST_F(split_batches, that_do_not_say_who_failed_are_halved) {
  add({"a1", "b1", "c1", "d1"});
  outcome = [](batch tried) -> std::optional<failure> {
    const bool bad = std::ranges::any_of(tried, [](const work* one) { return one->what().id == "c1"; });
    return bad ? std::optional(failure{std::nullopt, {{}, failure_class::poison, "commit"}}) : std::nullopt;
  };
  apply();
  EXPECT_EQ(attempts, (names{"a1 b1 c1 d1", "a1 b1", "c1 d1", "c1", "d1"}));
  EXPECT_EQ(charged, names{"c1"});
}

// Proves C8
TEST_F(split_batches, that_are_halved_keep_the_second_half_behind_the_first) {
  add({"a1", "b1", "a2", "c1"});
  outcome = [](batch tried) -> std::optional<failure> {
    const bool bad = tried[0]->what().id == "a1";
    return bad ? std::optional(failure{std::nullopt, {{}, failure_class::poison, "commit"}}) : std::nullopt;
  };
  apply();
  EXPECT_EQ(attempts, (names{"a1 b1 a2 c1", "a1 b1", "a1", "b1", "c1"}));
}

// Proves C3
TEST_F(split_batches, in_an_outage_are_cut_at_the_message_that_met_it) {
  add({"a1", "b1", "c1"});
  fail({"b1"}, failure_class::outage);
  apply();
  EXPECT_EQ(attempts, (names{"a1 b1 c1", "a1", "b1", "c1"}));
}

TEST_F(split_batches, with_several_failures_are_cut_into_pieces) {
  add({"a1", "b1", "c1", "d1"});
  outcome = [](batch tried) -> std::optional<failure> {
    for (std::size_t i = 0; i < tried.size(); ++i)
      if (tried[i]->what().id == "b1") {
        failure why{i, {{}, failure_class::poison, "no"}};
        why.several = true;
        return why;
      }
    return std::nullopt;
  };
  apply();
  EXPECT_EQ(attempts, (names{"a1 b1 c1 d1", "a1", "b1", "c1 d1"}));
}

// Proves C3
TEST_F(split_batches, with_many_bad_messages_do_not_run_a_good_one_once_for_each) {
  add({"z1", "a1", "b1", "c1", "d1", "e1", "f1", "g1"});
  fail({"a1", "b1", "c1", "d1", "e1", "f1", "g1"});
  apply();
  const auto with_the_good_one =
      std::ranges::count_if(attempts, [](const auto& ids) { return ids.starts_with("z1"); });
  EXPECT_EQ(with_the_good_one, 6) << "whole, without one to four, and alone";
  EXPECT_EQ(charged.size(), 7u);
  EXPECT_TRUE(is_done(messages.front()));
}

// Proves C8
TEST_F(split_batches, run_what_was_left_out_of_them_alone_and_what_is_behind_it_afterwards) {
  add({"a1", "b1", "a2", "c1", "c2"});
  outcome = [this](batch tried) -> std::optional<failure> {
    if (tried.size() == 5) {
      failure rest;
      rest.alone = {all[0], all[3]};
      rest.behind = {all[2], all[4]};
      return rest;
    }
    if (tried[0]->what().id == "c1") return failure{0, {{}, failure_class::poison, "no"}};
    return std::nullopt;
  };
  apply();
  EXPECT_EQ(attempts, (names{"a1 b1 a2 c1 c2", "a1", "c1", "a2"})) << "c2 waits for c1";
  EXPECT_EQ(charged, names{"c1"});
}

// Proves C8
TEST_F(split_batches, go_on_without_the_keys_that_another_process_has) {
  add({"a1", "b1", "a2"});
  outcome = [this](batch tried) -> std::optional<failure> {
    if (tried.size() < 3) return std::nullopt;
    failure put_off;
    put_off.put_off = {all[0], all[2]};
    return put_off;
  };
  apply();
  EXPECT_EQ(attempts, (names{"a1 b1 a2", "b1"}));
  EXPECT_EQ(held, 1);
  EXPECT_TRUE(charged.empty());
}

TEST_F(split_batches, stop_when_something_goes_away_meanwhile) {
  add({"a1", "b1"});
  outcome = [this](batch) -> std::optional<failure> {
    away = true;
    return failure{0, {{}, failure_class::outage, "away"}};
  };
  apply();
  EXPECT_EQ(attempts, names{"a1 b1"});
}

}  // namespace
}  // namespace settle::consume
