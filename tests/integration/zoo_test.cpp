// Every bug of the zoo is found by the same exploration and the same checker that the real code passes.
#include "base/zoo.hpp"

#include <gtest/gtest.h>

#include "support/scenarios.hpp"

namespace settle {
namespace {

struct found {
  std::int64_t lost = 0;
  std::int64_t doubled = 0;
  int dirty_runs = 0;
};

found explore_with(zoo::bug which) {
  zoo::present = which;
  test::temp_dir dir;
  found all;
  test::explore_order_pipeline(dir, [&](const std::string&, const verify_report& report) {
    all.lost += report.lost;
    all.doubled += report.doubled;
    all.dirty_runs += report.clean() ? 0 : 1;
  });
  zoo::present = zoo::bug::none;
  return all;
}

// Proves V2, V3
TEST(zoo, without_a_bug_nothing_is_found) { EXPECT_EQ(explore_with(zoo::bug::none).dirty_runs, 0); }

// Proves V2, V3, C1
TEST(zoo, ack_before_commit_loses_and_is_found) {
  EXPECT_GT(explore_with(zoo::bug::ack_before_commit).lost, 0);
}

// Proves V2, V3, C1, C5
TEST(zoo, check_then_insert_doubles_and_is_found) {
  EXPECT_GT(explore_with(zoo::bug::check_then_insert).doubled, 0);
}

// Proves V2, V3, O1
TEST(zoo, publish_after_commit_loses_and_is_found) {
  EXPECT_GT(explore_with(zoo::bug::publish_after_commit).lost, 0);
}

}  // namespace
}  // namespace settle
