// Every order of those who bring an event, let time pass, fail, or are replaced, against a host's tick.
#include <gtest/gtest.h>

#include "isolation/saga_specs.hpp"
#include "support/postgres_fixture.hpp"

namespace settle::isolation {
namespace {

class saga_isolation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }

  static void expect_passed(const exploration& done, int orders_min) {
    EXPECT_EQ(done.failure, "");
    EXPECT_GE(done.ran, orders_min);
  }
};

// Proves S3, V3
TEST_F(saga_isolation, an_event_and_the_wait_for_it_find_each_other) {
  expect_passed(early_event_and_wait(), 10);
}

// Proves S3, V3
TEST_F(saga_isolation, of_an_event_and_a_timeout_one_wins_and_nothing_is_lost) {
  expect_passed(event_and_timeout(), 8);
}

// Proves S3, V3
TEST_F(saga_isolation, an_event_is_not_forgotten_when_another_branch_goes_on) {
  expect_passed(event_and_other_branch(), 6);
}

// Proves S3, S4, V3
TEST_F(saga_isolation, a_tick_that_fails_leaves_no_frame_that_saw_it) {
  expect_passed(event_and_failed_tick(), 15);
}

// Proves S4, V3
TEST_F(saga_isolation, of_two_owners_one_writes) { expect_passed(two_owners(), 8); }

// Proves S4, V3
TEST_F(saga_isolation, a_request_that_is_out_is_repeated_with_its_key) {
  expect_passed(take_over_of_a_call(), 10);
}

// Proves S7, V3
TEST_F(saga_isolation, what_was_done_is_undone_and_what_comes_later_is_not_done) {
  expect_passed(undo_and_late_action(), 6);
}

}  // namespace
}  // namespace settle::isolation
