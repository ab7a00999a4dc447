// Every order of the steps of three callers with one key, and of three deliveries of one webhook.
#include <gtest/gtest.h>

#include "isolation/caller_specs.hpp"

namespace settle::isolation {
namespace {

class request_isolation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    world_.open();
  }

  static void expect_passed(const exploration& done) {
    EXPECT_EQ(done.failure, "");
    EXPECT_GT(done.ran, 0);
  }

  callers_world world_;
};

// Proves I4, I5, V3
TEST_F(request_isolation, of_one_key_one_runs_however_its_transactions_meet) {
  expect_passed(requests_with_one_key(world_));
}

// Proves A3, V3
TEST_F(request_isolation, of_one_webhook_one_delivery_is_applied_however_its_transactions_meet) {
  expect_passed(deliveries_of_one_webhook(world_));
}

}  // namespace
}  // namespace settle::isolation
