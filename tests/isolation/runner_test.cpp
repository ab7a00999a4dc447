// The runner itself: which orders it runs, what it does with steps that wait, and how it tells of a failure.
#include "isolation/runner.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <set>

#include "support/postgres_fixture.hpp"

namespace settle::isolation {
namespace {

class isolation_runner : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    own_.emplace();
    own_->run("create table account (id int primary key, cents int); create table log (line text)");
    all_.emplace(own_->conninfo());
  }
  void TearDown() override { ::unsetenv("SETTLE_SCHEDULE"); }

  exploration explore() {
    return all_->explore({.reset = [this] { begin_anew(); }, .check = [this] { return check(); }});
  }

  void begin_anew() {
    own_->run("delete from account; delete from log; insert into account values (1, 100)");
    order_.clear();
  }

  std::string check() {
    orders_.insert(order_);
    return wrong_ ? wrong_() : "";
  }

  std::function<void()> note(char what) {
    return [this, what] { order_ += what; };
  }

  std::optional<test::scratch_database> own_;
  std::optional<runner> all_;
  std::string order_;
  std::set<std::string> orders_;
  std::function<std::string()> wrong_;
};

TEST_F(isolation_runner, runs_every_order_that_keeps_each_sessions_own) {
  for (const std::string name : {"ab", "cd", "ef"})
    all_->add(name).call("first", note(name[0])).call("second", note(name[1]));
  const auto done = explore();
  EXPECT_EQ(done.ran, 90);
  EXPECT_EQ(orders_.size(), 90u);
  for (const auto& order : orders_) EXPECT_LT(order.find('a'), order.find('b'));
}

TEST_F(isolation_runner, lets_the_others_go_on_while_a_step_waits_for_a_lock) {
  const std::string take = "begin; update account set cents = cents - 10 where id = 1";
  all_->add("one").sql(take).sql("commit");
  all_->add("two").sql(take).sql("commit");
  wrong_ = [this] {
    const auto left = own_->run("select cents from account");
    return left == "80" ? "" : left + " cents are left";
  };
  const auto done = explore();
  EXPECT_EQ(done.failure, "");
  EXPECT_EQ(done.ran, 4) << "one after the other, or the second waits for the first";
  EXPECT_EQ(done.impossible, 2) << "the second cannot commit before it has the lock";
}

// Two that read before they write.
TEST_F(isolation_runner, shows_the_order_that_fails_and_runs_it_alone) {
  for (const std::string name : {"one", "two"})
    all_->add(name)
        .sql("insert into log select '" + name + " ' || cents from account")
        .sql(
            "update account set cents = (select split_part(line, ' ', 2)::int - 10 from log where line like "
            "'" +
            name + "%')");
  wrong_ = [this] {
    const auto left = own_->run("select cents from account");
    return left == "80" ? "" : left + " cents are left";
  };
  const auto found = explore();
  EXPECT_EQ(found.ran, 1) << "one after the other";
  EXPECT_TRUE(found.failure.starts_with("90 cents are left\n  one        insert")) << found.failure;
  EXPECT_NE(found.failure.find("SETTLE_SCHEDULE='one two one two' "), std::string::npos) << found.failure;
  ::setenv("SETTLE_SCHEDULE", "one two one two", 1);
  EXPECT_EQ(explore().failure, found.failure);
  ::setenv("SETTLE_SCHEDULE", "two two one one", 1);
  EXPECT_EQ(explore().failure, "");
  ::setenv("SETTLE_SCHEDULE", "two one one", 1);
  EXPECT_THROW(explore(), std::invalid_argument);
}

TEST_F(isolation_runner, takes_an_error_for_a_failure_unless_it_is_an_outcome) {
  auto& one = all_->add("one").sql("select 1 / 0");
  EXPECT_NE(explore().failure.find("division by zero"), std::string::npos);
  one.may_fail();
  EXPECT_EQ(explore().failure, "");
}

TEST_F(isolation_runner, goes_on_where_an_action_has_paused) {
  auto& one = all_->add("one");
  const auto in_two_parts = [&] {
    order_ += 'a';
    one.pause();
    order_ += 'b';
  };
  one.call("begins", in_two_parts).call("goes on", in_two_parts);
  all_->add("two").call("looks", note('-'));
  EXPECT_EQ(explore().ran, 3);
  EXPECT_EQ(orders_, (std::set<std::string>{"-ab", "a-b", "ab-"}));
}

}  // namespace
}  // namespace settle::isolation
