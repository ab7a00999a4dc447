// Every order of the steps of each spec: whatever is committed is delivered, once and in order, and nothing
// else.
#include <gtest/gtest.h>

#include "isolation/outbox_specs.hpp"

namespace settle::isolation {
namespace {

void expect_clean(void (*spec)(outbox_world&)) {
  if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
  outbox_world world;
  spec(world);
  const auto done = world.explore();
  EXPECT_EQ(done.failure, "");
  EXPECT_GT(done.ran, 0);
  ::testing::Test::RecordProperty("interleavings", done.ran);
  std::printf("             %d orders, %d more cannot happen\n", done.ran, done.impossible);
}

// Proves O1, O3, V3
TEST(outbox_isolation, a_late_commit_with_a_lower_number_is_found_and_delays_nobody) {
  expect_clean(late_commit_with_a_lower_number);
}

// Proves O1, V3
TEST(outbox_isolation, commits_in_the_middle_of_the_relays_work_are_found_once) {
  expect_clean(commit_while_the_relay_is_at_work);
}

// Proves O1, O3, V3
TEST(outbox_isolation, commits_that_arrive_while_a_window_is_paged_are_found_once) {
  expect_clean(paging_while_commits_arrive);
}

// Proves O4, V3
TEST(outbox_isolation, events_of_one_key_come_in_the_order_of_its_lock) {
  expect_clean(one_key_in_lock_order);
}

// Proves O1, V3
TEST(outbox_isolation, savepoints_are_kept_or_undone_like_everything_else) { expect_clean(savepoints); }

// Proves O1, V3
TEST(outbox_isolation, prepared_transactions_are_found_when_they_end_and_delay_nobody) {
  expect_clean(prepared_transactions);
}

// Proves O1, V3
TEST(outbox_isolation, a_relay_whose_messages_make_others_write_misses_nothing) {
  expect_clean(relay_that_also_writes);
}

// Proves O1, O9, V3
TEST(outbox_isolation, the_ring_empties_nothing_that_a_slow_writer_still_adds) {
  expect_clean(ring_against_a_slow_writer);
}

// Proves O9, V3
TEST(outbox_isolation, the_ring_is_not_turned_by_what_an_old_snapshot_shows) {
  expect_clean(ring_turned_with_an_old_snapshot);
}

// Proves O3, O4, V3
TEST(outbox_isolation, a_replaced_relay_may_repeat_but_not_lose_reorder_or_note) {
  expect_clean(replaced_relay);
}

// Proves O1, V3
TEST(outbox_isolation, two_tickers_need_no_lock) { expect_clean(two_tickers); }

// Proves O12, V3
TEST(outbox_isolation, a_rebase_loses_nothing_of_those_who_publish_meanwhile) {
  expect_clean(rebase_against_writers);
}

}  // namespace
}  // namespace settle::isolation
