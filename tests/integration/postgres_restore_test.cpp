// An outbox whose server is killed, replaced or restored elsewhere: nothing is lost, nothing is made up.
#include <gtest/gtest.h>

#include "settle/postgres.hpp"
#include "settle/relay.hpp"
#include "support/postgres_disasters.hpp"
#include "support/postgres_fixture.hpp"
#include "support/recording_publisher.hpp"

namespace settle::test {
namespace {

using names = std::vector<std::string>;

class postgres_restore : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }

  static void expect_whole(const aftermath& after) {
    EXPECT_EQ(after.ghosts, names{});
    EXPECT_EQ(after.lost, names{});
    EXPECT_EQ(after.reordered, names{});
  }
};

// Proves O1
TEST_F(postgres_restore, what_a_crash_takes_back_was_never_published) {
  const auto after = kill_with_unsynced_commits();
  expect_whole(after);
  EXPECT_EQ(after.errors, std::vector<errc>{}) << "a crash is no other history";
}

// Proves O12
TEST_F(postgres_restore, after_a_promotion_relaying_stops_and_a_rebase_loses_nothing) {
  const auto after = promote_the_standby();
  expect_whole(after);
  EXPECT_EQ(after.errors, std::vector<errc>{errc::cluster_changed});
  EXPECT_NE(after.on_a_standby.find("is a standby and takes no writes"), std::string::npos)
      << after.on_a_standby;
}

// Proves O12
TEST_F(postgres_restore, after_a_restore_into_a_fresh_cluster_relaying_stops_and_a_rebase_loses_nothing) {
  const auto after = restore_into_a_fresh_cluster();
  expect_whole(after);
  EXPECT_EQ(after.errors, std::vector<errc>{errc::cluster_changed});
}

}  // namespace
}  // namespace settle::test
