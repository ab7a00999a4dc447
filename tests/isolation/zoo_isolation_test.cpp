// Each bug of the zoo that concerns the outbox on PostgreSQL is found by the spec, or the disaster, that the
// real code passes.
#include <gtest/gtest.h>

#include "base/zoo.hpp"
#include "isolation/outbox_specs.hpp"
#include "support/postgres_disasters.hpp"

namespace settle::isolation {
namespace {

class postgres_zoo : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  void TearDown() override { zoo::present = zoo::bug::none; }

  static std::string failure_of(zoo::bug which, void (*spec)(outbox_world&)) {
    zoo::present = which;
    outbox_world world;
    spec(world);
    return world.explore().failure;
  }
};

// Proves V3, O4
TEST_F(postgres_zoo, order_by_xid_is_found_as_reordered) {
  const auto failure = failure_of(zoo::bug::order_by_xid, one_key_in_lock_order);
  EXPECT_TRUE(failure.starts_with("reordered: key k")) << failure;
}

// Proves V3, O1
TEST_F(postgres_zoo, moving_snapshot_is_found_as_lost) {
  const auto failure = failure_of(zoo::bug::moving_snapshot, paging_while_commits_arrive);
  EXPECT_TRUE(failure.starts_with("lost: ")) << failure;
}

// Proves V3, O1
TEST_F(postgres_zoo, serial_cursor_is_found_as_lost) {
  const auto failure = failure_of(zoo::bug::serial_cursor, commit_while_the_relay_is_at_work);
  EXPECT_TRUE(failure.starts_with("lost: ")) << failure;
}

// Proves V3, O1
TEST_F(postgres_zoo, publish_before_durable_is_found_as_ghosts) {
  zoo::present = zoo::bug::publish_before_durable;
  EXPECT_FALSE(test::kill_with_unsynced_commits().ghosts.empty());
}

// Proves V3, O12
TEST_F(postgres_zoo, cursor_kept_across_failover_is_found_as_lost) {
  zoo::present = zoo::bug::cursor_kept_across_failover;
  EXPECT_FALSE(test::restore_into_a_fresh_cluster().lost.empty());
}

}  // namespace
}  // namespace settle::isolation
