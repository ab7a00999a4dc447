// Every bug of the zoo is found by the same exploration and the same checker that the real code passes.
#include "base/zoo.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "dead_letter/shared.hpp"
#include "settle/dead_letter.hpp"
#include "support/order_world.hpp"
#include "support/scenarios.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

struct found {
  std::int64_t lost = 0;
  std::int64_t doubled = 0;
  int dirty_runs = 0;
};

found explore_with(zoo::bug which) {
  zoo::present = which;
  test::temp_dir dir;
  test::scenario_broker on(test::broker_kind::embedded);
  found all;
  test::explore_order_pipeline(dir, on, [&](const std::string&, const verify_report& report) {
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

// A warehouse whose handlers fail, beside a mailing that has already done its part and whose records expire
// at once.
struct failing_world : test::order_world {
  explicit failing_world(const test::temp_dir& in)
      : order_world(in),
        mailing(make_consumer({.name = "mailing", .dedup_keep = 0ms})),
        replays(warehouse(), broker().publishing()) {}

  void place_until(int last) {
    for (int i = 0; i <= last; ++i) place(i);
    while (relay().run_once() || mailing->run_once()) {
    }
  }
  void drain_for(duration total) {
    for (duration passed{}; passed < total; passed += 200ms) {
      for (bool busy = true; busy;) {
        busy = replays.run_once();
        for (auto* one : {mailing.get(), &consumer()}) busy = one->run_once() || busy;
      }
      time().advance(200ms);
    }
  }
  void replay_all() {
    replay(warehouse(), {}, {.wait_max = 0ms, .poll = 1ms});
    drain_for(2s);
  }

  std::unique_ptr<settle::consumer> mailing;
  settle::relay replays;
};

struct judged {
  verify_report report;
  std::size_t letters = 0;
};

judged run_with(zoo::bug which, const std::function<void(failing_world&)>& scenario) {
  zoo::present = which;
  test::temp_dir dir;
  failing_world world(dir);
  world.place_until(6);
  scenario(world);
  zoo::present = zoo::bug::none;
  return {world.verify(), dead_letters(world.warehouse()).size()};
}

void expect_all_applied(const judged& all) {
  EXPECT_TRUE(all.report.clean());
  EXPECT_EQ(all.report.pending, 0);
  EXPECT_EQ(all.report.given_up, 0);
  EXPECT_EQ(all.report.applied, all.report.expected);
}

void fail_for_a_moment(failing_world& world) {
  world.failing.insert(test::order_name(1));
  world.drain_for(300ms);
  world.failing.clear();
  world.drain_for(5s);
}

// Proves V2, V3, C1, C8
TEST(zoo, claim_outside_rolled_back_part_loses_and_is_found) {
  expect_all_applied(run_with(zoo::bug::none, fail_for_a_moment));
  EXPECT_EQ(run_with(zoo::bug::claim_outside_rolled_back_part, fail_for_a_moment).report.lost, 1);
}

// Proves V2, V3, C1
TEST(zoo, failed_part_kept_doubles_and_is_found) {
  EXPECT_GT(run_with(zoo::bug::failed_part_kept, fail_for_a_moment).report.doubled, 0);
}

// Proves V2, V3, O1
TEST(zoo, replay_address_believed_loses_and_is_found) {
  const auto write_by_hand = [](failing_world& world) {
    world.place(7);
    auto tx = world.orders().begin();
    tx.execute(
        "update settle_outbox set headers = '{\"settlereplayfor\":\"nobody\"}' "
        "where seq = (select max(seq) from settle_outbox)");
    tx.commit();
    while (world.relay().run_once()) {
    }
    world.drain_for(2s);
  };
  expect_all_applied(run_with(zoo::bug::none, write_by_hand));
  EXPECT_GT(run_with(zoo::bug::replay_address_believed, write_by_hand).report.lost, 0);
}

// Proves V2, V3, C8
TEST(zoo, overtaking_a_parked_key_reorders_and_is_found) {
  const auto found = run_with(zoo::bug::overtaking_a_parked_key, fail_for_a_moment);
  EXPECT_GT(found.report.reordered, 0);
  EXPECT_EQ(found.report.applied, found.report.expected);
}

// Proves V2, V3, C3
TEST(zoo, charge_for_an_outage_gives_up_and_is_found) {
  const auto close_for_a_while = [](failing_world& world) {
    world.outage = true;
    world.drain_for(20s);
    world.outage = false;
    world.drain_for(15s);
  };
  const auto without = run_with(zoo::bug::none, close_for_a_while);
  expect_all_applied(without);
  EXPECT_EQ(without.letters, 0u);
  const auto found = run_with(zoo::bug::charge_for_an_outage, close_for_a_while);
  EXPECT_EQ(found.letters, 7u);
  EXPECT_EQ(found.report.given_up, 7);
}

void give_up_and_replay(failing_world& world) {
  world.failing.insert(test::order_name(1));
  world.drain_for(10s);
  world.failing.clear();
  world.replay_all();
}

// Proves V2, V3, D3
TEST(zoo, replay_to_all_groups_doubles_and_is_found) {
  const auto without = run_with(zoo::bug::none, give_up_and_replay);
  expect_all_applied(without);
  EXPECT_EQ(without.letters, 1u);
  const auto found = run_with(zoo::bug::replay_to_all_groups, give_up_and_replay);
  ASSERT_EQ(found.report.doubled, 1);
  EXPECT_EQ(found.report.findings[0].consumer, "mailing");
}

// Proves V2, V3, D3
TEST(zoo, expiry_before_replay_stops_it_and_is_found) {
  EXPECT_EQ(run_with(zoo::bug::expiry_before_replay, give_up_and_replay).report.given_up, 1);
}

}  // namespace
}  // namespace settle
