#include "sql/ownership.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "settle/error.hpp"
#include "settle/postgres.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/databases.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"
#include "support/temp_dir.hpp"

namespace settle::sql {
namespace {

using namespace std::chrono_literals;
using test::code_of;

const timestamp now{1'000s};
const timestamp later = now + 1s;
const timestamp earlier = now - 1s;
const auto running = running_at(now, 1s);

share_row free_share(int number) { return {number, 0, {}, 0, {}}; }
share_row owned(int number, const std::string& by, timestamp until = later) {
  return {number, 0, by, 1, until};
}

TEST(plan_ownership, a_lone_member_claims_everything_that_is_free) {
  const std::vector<share_row> shares{free_share(0), free_share(1), free_share(2)};
  EXPECT_EQ(plan_ownership(shares, 1, "me", running), (ownership_plan{.claim = {0, 1, 2}, .release = {}}));
}

TEST(plan_ownership, without_shares_there_is_nothing_to_do) {
  EXPECT_EQ(plan_ownership({}, 3, "me", running), ownership_plan{});
}

TEST(plan_ownership, a_member_claims_no_more_than_its_even_part) {
  const std::vector<share_row> shares{free_share(0), free_share(1), free_share(2), free_share(3)};
  EXPECT_EQ(plan_ownership(shares, 2, "me", running).claim, (std::vector{0, 1}));
}

TEST(plan_ownership, an_uneven_number_is_rounded_up_so_that_no_share_is_left_over) {
  const std::vector<share_row> shares{owned(0, "other"), owned(1, "other"), free_share(2), free_share(3),
                                      free_share(4)};
  EXPECT_EQ(plan_ownership(shares, 2, "me", running).claim, (std::vector{2, 3, 4}));
}

TEST(plan_ownership, what_another_holds_under_a_running_lease_is_left_alone) {
  const std::vector<share_row> shares{owned(0, "other"), free_share(1)};
  EXPECT_EQ(plan_ownership(shares, 1, "me", running), (ownership_plan{.claim = {1}, .release = {}}));
}

TEST(plan_ownership, an_expired_lease_is_free) {
  const std::vector<share_row> shares{owned(0, "other", earlier), owned(1, "other", now),
                                      owned(2, "other", later)};
  EXPECT_EQ(plan_ownership(shares, 1, "me", running).claim, (std::vector{0, 1}));
}

// Proves O4
TEST(plan_ownership, a_lease_that_was_written_before_the_clock_was_set_back_is_free) {
  const auto believed = now + lease_believed_min;
  const std::vector<share_row> shares{owned(0, "other", believed), owned(1, "other", believed + 1us)};
  EXPECT_EQ(plan_ownership(shares, 1, "me", running).claim, (std::vector{1}));
  EXPECT_TRUE(plan_ownership(shares, 1, "me", running_at(now, 1h)).claim.empty()) << "our own are longer";
}

TEST(plan_ownership, our_own_share_is_kept_even_if_its_lease_has_expired) {
  const std::vector<share_row> shares{owned(0, "me", earlier)};
  EXPECT_EQ(plan_ownership(shares, 1, "me", running), ownership_plan{});
}

TEST(plan_ownership, a_member_releases_what_is_more_than_its_part_when_others_come) {
  const std::vector<share_row> shares{owned(0, "me"), owned(1, "me"), owned(2, "me"), owned(3, "me")};
  const auto plan = plan_ownership(shares, 2, "me", running);
  EXPECT_EQ(plan.release.size(), 2u);
  EXPECT_TRUE(plan.claim.empty());
}

TEST(plan_ownership, more_members_than_shares_leaves_each_with_one_at_most) {
  const std::vector<share_row> shares{free_share(0), free_share(1)};
  EXPECT_EQ(plan_ownership(shares, 5, "me", running).claim.size(), 1u);
}

TEST(plan_ownership, a_member_that_has_its_part_claims_no_free_share_of_others) {
  const std::vector<share_row> shares{owned(0, "me"), owned(1, "me"), free_share(2), free_share(3)};
  EXPECT_EQ(plan_ownership(shares, 2, "me", running), ownership_plan{});
}

TEST(plan_ownership, nobody_alive_counts_as_one) {
  const std::vector<share_row> shares{free_share(0), free_share(1)};
  EXPECT_EQ(plan_ownership(shares, 0, "me", running).claim.size(), 2u);
}

// Ownership in a real database, under a clock that moves when told.
class ownership_in : public ::testing::TestWithParam<dialect> {
 protected:
  static constexpr duration ttl = 9s;
  static constexpr int shares = 4;

  void SetUp() override {
    if (GetParam() == dialect::postgres) {
      if (const auto why = test::postgres_missing(); !why.empty()) GTEST_SKIP() << why;
      server_.emplace();
    }
    db_ = open();
    migrate(*db_);
  }

  // As another process would open it.
  std::unique_ptr<database> open() {
    if (server_) return postgres::open(server_->conninfo(), {.env = {.time = &time_}});
    return sqlite::open(dir_.file("a.db"), {.env = {.time = &time_}});
  }

  result run(const std::string& sql, const value& with) {
    auto tx = db_->begin();
    auto done = tx.execute(sql, {with});
    tx.commit();
    return done;
  }

  // The table of shares, as this database calls it.
  std::string shares_table() const {
    return GetParam() == dialect::postgres ? "settle.shares" : "settle_shares";
  }

  ownership make() { return ownership(*db_, {"test", shares, ttl}); }

  ownership_change refresh(ownership& of) {
    auto tx = db_->begin();
    const auto change = of.refresh(tx);
    tx.commit();
    of.applied();
    return change;
  }

  void advance(const ownership& of, const std::map<int, std::int64_t>& positions) {
    auto tx = db_->begin();
    of.advance(tx, positions);
    tx.commit();
  }

  std::int64_t position_of(int share) {
    return run("select position from " + shares_table() + " where scope = 'test' and share = $1", share)[0][0]
        .integer();
  }

  testing::manual_time time_;
  test::temp_dir dir_;
  std::optional<test::scratch_database> server_;
  std::unique_ptr<database> db_;
};

INSTANTIATE_TEST_SUITE_P(databases, ownership_in, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

TEST_P(ownership_in, a_new_member_is_due_at_once_and_then_three_times_per_lease) {
  auto one = make();
  EXPECT_TRUE(one.due());
  refresh(one);
  EXPECT_FALSE(one.due());
  time_.advance(ttl / 3 - 1us);
  EXPECT_FALSE(one.due());
  time_.advance(1us);
  EXPECT_TRUE(one.due());
}

TEST_P(ownership_in, the_first_member_claims_every_share_from_the_beginning) {
  auto one = make();
  const auto change = refresh(one);
  EXPECT_EQ(change.gained, (std::vector{0, 1, 2, 3}));
  EXPECT_TRUE(change.lost.empty());
  for (const auto& [share, held] : one.held()) {
    EXPECT_EQ(held.position, 0) << share;
    EXPECT_EQ(held.epoch, 1) << share;
  }
}

TEST_P(ownership_in, what_a_refresh_decides_counts_only_once_it_is_applied) {
  auto one = make();
  {
    auto tx = db_->begin();
    EXPECT_EQ(one.refresh(tx).gained.size(), 4u);
  }  // rolled back, so not applied
  EXPECT_TRUE(one.held().empty());
  EXPECT_TRUE(one.due());
  EXPECT_EQ(refresh(one).gained.size(), 4u);
}

TEST_P(ownership_in, renewing_keeps_shares_and_epochs) {
  auto one = make();
  refresh(one);
  for (int i = 0; i < 10; ++i) {
    time_.advance(ttl / 3);
    const auto change = refresh(one);
    EXPECT_TRUE(change.gained.empty());
    EXPECT_TRUE(change.lost.empty());
  }
  EXPECT_EQ(one.held().at(0).epoch, 1);
  auto two = make();
  EXPECT_TRUE(refresh(two).gained.empty()) << "the lease was renewed, so nothing is free";
}

TEST_P(ownership_in, members_end_with_an_even_part_each_and_no_share_twice) {
  auto one = make();
  auto two = make();
  refresh(one);
  EXPECT_TRUE(refresh(two).gained.empty());
  time_.advance(ttl / 3);
  EXPECT_EQ(refresh(one).lost.size(), 2u);
  EXPECT_EQ(refresh(two).gained.size(), 2u);
  std::set<int> all;
  for (const auto* member : {&one, &two})
    for (const auto& [share, unused] : member->held()) EXPECT_TRUE(all.insert(share).second) << share;
  EXPECT_EQ(all.size(), 4u);
}

TEST_P(ownership_in, a_take_over_waits_for_the_lease_and_raises_the_epoch) {
  auto one = make();
  auto two = make();
  refresh(one);
  advance(one, {{0, 17}});
  time_.advance(ttl - 1us);
  EXPECT_TRUE(refresh(two).gained.empty());
  time_.advance(1us);
  EXPECT_EQ(refresh(two).gained.size(), 4u);
  EXPECT_EQ(two.held().at(0).epoch, 2);
  EXPECT_EQ(two.held().at(0).position, 17) << "the new owner goes on where the old one was";
}

// Proves O4: a relay that was paused past its lease cannot move what another owns
TEST_P(ownership_in, a_replaced_owner_cannot_advance_and_writes_nothing) {
  auto one = make();
  auto two = make();
  refresh(one);
  time_.advance(ttl);
  refresh(two);
  advance(two, {{0, 5}, {1, 5}});
  EXPECT_EQ(code_of([&] { advance(one, {{0, 9}, {1, 9}}); }), errc::ownership_lost);
  EXPECT_EQ(position_of(0), 5);
  EXPECT_EQ(position_of(1), 5);
}

// Proves O4
TEST_P(ownership_in, one_lost_share_keeps_the_others_of_the_batch_from_moving_too) {
  auto one = make();
  auto two = make();
  refresh(one);
  // share 3 alone changes hands
  run("update " + shares_table() + " set owner = $1, epoch = epoch + 1 where share = 3", two.member());
  EXPECT_EQ(code_of([&] { advance(one, {{0, 9}, {3, 9}}); }), errc::ownership_lost);
  EXPECT_EQ(position_of(0), 0);
  EXPECT_EQ(position_of(3), 0);
}

TEST_P(ownership_in, an_owner_that_regains_its_share_in_a_new_epoch_has_lost_the_old_one) {
  auto one = make();
  auto two = make();
  refresh(one);
  time_.advance(ttl);
  refresh(two);
  time_.advance(ttl);
  const auto change = refresh(one);
  EXPECT_EQ(change.lost.size(), 4u);
  EXPECT_EQ(change.gained.size(), 4u);
  EXPECT_EQ(one.held().at(0).epoch, 3);
}

TEST_P(ownership_in, the_same_owner_in_an_old_epoch_is_a_stranger) {
  auto one = make();
  auto two = make();
  refresh(one);
  time_.advance(ttl);
  refresh(two);
  // the share is one's again, but one has not heard of it
  run("update " + shares_table() + " set owner = $1, epoch = epoch + 1", one.member());
  EXPECT_EQ(code_of([&] { advance(one, {{0, 9}}); }), errc::ownership_lost);
}

TEST_P(ownership_in, released_shares_are_free_at_once) {
  auto one = make();
  auto two = make();
  refresh(one);
  advance(one, {{2, 30}});
  {
    auto tx = db_->begin();
    one.release_all(tx);
    tx.commit();
  }
  EXPECT_EQ(one.drop_all(), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(refresh(two).gained.size(), 4u);
  EXPECT_EQ(two.held().at(2).position, 30);
  EXPECT_EQ(two.held().at(2).epoch, 2);
}

TEST_P(ownership_in, what_is_released_in_doubt_is_free_at_once_and_taken_over) {
  auto one = make();
  auto two = make();
  refresh(one);
  {
    auto tx = db_->begin();
    one.release_all(tx, {1, 3});
    tx.commit();
  }
  one.drop_all();
  const auto change = refresh(two);
  EXPECT_EQ(change.gained.size(), 4u);
  EXPECT_EQ(change.taken_over, (std::vector{1, 3}));
}

TEST_P(ownership_in, what_is_given_away_in_doubt_is_not_renewed_by_who_gave_it) {
  auto one = make();
  auto two = make();
  refresh(one);
  refresh(two);
  for (int i = 0; i < 2; ++i) {
    auto tx = db_->begin();
    one.refresh(tx, {0, 1, 2, 3});
    tx.commit();
    one.applied();
  }
  EXPECT_EQ(one.held().size(), 2u);
  EXPECT_EQ(refresh(two).taken_over.size(), 2u);
}

TEST_P(ownership_in, a_replaced_owner_cannot_release_what_is_not_its_own_any_more) {
  auto one = make();
  auto two = make();
  refresh(one);
  time_.advance(ttl);
  refresh(two);
  {
    auto tx = db_->begin();
    one.release_all(tx);
    tx.commit();
  }
  advance(two, {{0, 1}, {1, 1}, {2, 1}, {3, 1}});
  EXPECT_EQ(position_of(3), 1);
}

TEST_P(ownership_in, after_dropping_everything_a_member_is_due_again) {
  auto one = make();
  refresh(one);
  one.drop_all();
  EXPECT_TRUE(one.due());
  EXPECT_TRUE(one.held().empty());
}

TEST_P(ownership_in, failures_are_noted_under_the_fence_and_forgotten_on_progress) {
  auto one = make();
  refresh(one);
  const auto note = [&] {
    auto tx = db_->begin();
    one.note_failure(tx, 1, "broker is down");
    tx.commit();
  };
  const auto failures = [&] {
    return run("select failures, last_error from " + shares_table() + " where share = $1", 1);
  };
  note();
  note();
  EXPECT_EQ(failures()[0][0].integer(), 2);
  EXPECT_EQ(failures()[0][1].text(), "broker is down");
  advance(one, {{1, 4}});
  EXPECT_EQ(failures()[0][0].integer(), 0);
  EXPECT_TRUE(failures()[0][1].is_null());
  auto two = make();
  time_.advance(ttl);
  refresh(two);
  note();
  EXPECT_EQ(failures()[0][0].integer(), 0) << "a replaced owner's failures are nobody's business";
}

TEST_P(ownership_in, scopes_do_not_touch_each_other) {
  auto one = make();
  ownership other(*db_, {"another scope", 2, ttl});
  refresh(one);
  EXPECT_EQ(refresh(other).gained, (std::vector{0, 1}));
  time_.advance(ttl / 3);
  EXPECT_TRUE(refresh(one).lost.empty());
}

// Proves O4
TEST_P(ownership_in, a_clock_that_is_set_back_puts_no_renewal_off) {
  auto one = make();
  refresh(one);
  time_.advance(-2h);
  EXPECT_TRUE(one.due());
  refresh(one);
  EXPECT_FALSE(one.due());
  time_.advance(-1us);
  EXPECT_TRUE(one.due());
}

// Its owner and its member's row stem from a clock that nobody has any more. Proves O4
TEST_P(ownership_in, a_clock_that_is_set_back_does_not_keep_the_shares_of_a_dead_member_for_as_long) {
  auto dead = make();
  auto heir = make();
  refresh(dead);
  time_.advance(-2h);
  EXPECT_EQ(refresh(heir).taken_over, (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(code_of([&] { advance(dead, {{0, 9}}); }), errc::ownership_lost) << "if it lives all the same";
}

TEST_P(ownership_in, members_with_other_leases_leave_each_other_alone) {
  ownership slow(*db_, {"test", shares, 1h});
  auto quick = make();
  refresh(slow);
  EXPECT_TRUE(refresh(quick).gained.empty());
  EXPECT_TRUE(refresh(slow).taken_over.empty());
}

// Proves O4: under real concurrency an epoch of a share has one owner, and no refresh fails
TEST_P(ownership_in, members_that_refresh_at_the_same_time_never_own_a_share_in_the_same_epoch) {
  constexpr int members = 4, rounds = 25;
  std::mutex mutex;
  std::map<std::pair<int, std::int64_t>, std::string> owners;
  std::vector<std::unique_ptr<database>> opened;
  for (int m = 0; m < members; ++m) opened.push_back(open());
  {
    std::vector<std::jthread> threads;
    for (auto& db : opened)
      threads.emplace_back([&] {
        ownership mine(*db, {"test", shares, ttl});
        for (int round = 0; round < rounds; ++round) {
          auto tx = db->begin();
          const auto failed = code_of([&] {
            mine.refresh(tx);
            tx.commit();
          });
          EXPECT_EQ(failed, std::nullopt);
          mine.applied();
          const std::scoped_lock lock(mutex);
          for (const auto& [share, held] : mine.held())
            EXPECT_EQ(owners.try_emplace({share, held.epoch}, mine.member()).first->second, mine.member());
          time_.advance(ttl / 2);  // some leases run out, some are renewed in time
        }
      });
  }
  EXPECT_GT(owners.size(), static_cast<std::size_t>(shares)) << "nothing changed hands";
}

}  // namespace
}  // namespace settle::sql
