// Each bug of the zoo that concerns sagas on PostgreSQL is found by a spec that the real code passes.
#include <gtest/gtest.h>

#include "base/zoo.hpp"
#include "isolation/saga_specs.hpp"
#include "support/postgres_fixture.hpp"

namespace settle::isolation {
namespace {

class saga_zoo : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  void TearDown() override { zoo::present = zoo::bug::none; }

  static std::string failure_of(zoo::bug which, exploration (*spec)()) {
    zoo::present = which;
    return spec().failure;
  }
};

// Proves V3, S3
TEST_F(saga_zoo, early_event_race_is_found_as_a_saga_that_waits_on) {
  const auto failure = failure_of(zoo::bug::early_event_race, early_event_and_wait);
  EXPECT_TRUE(failure.starts_with("effects: RUNNING: label")) << failure;
}

// Proves V3, S3
TEST_F(saga_zoo, wake_up_overwritten_is_found_as_an_event_that_nobody_looks_at) {
  const auto failure = failure_of(zoo::bug::wake_up_overwritten, event_and_other_branch);
  EXPECT_TRUE(failure.starts_with("effects: label")) << failure;
}

// Proves V3, S4
TEST_F(saga_zoo, frames_kept_after_failure_is_found_as_an_effect_that_is_missing) {
  const auto failure = failure_of(zoo::bug::frames_kept_after_failure, event_and_failed_tick);
  EXPECT_TRUE(failure.starts_with("effects: ")) << failure;
}

// Proves V3, S4
TEST_F(saga_zoo, key_of_the_owner_is_found_as_a_second_charge) {
  const auto failure = failure_of(zoo::bug::key_of_the_owner, take_over_of_a_call);
  EXPECT_TRUE(failure.starts_with("effects and charges: COMPLETED: flight, hotel; 2")) << failure;
}

}  // namespace
}  // namespace settle::isolation
