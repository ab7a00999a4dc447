// How long claims are kept in each store, and what operators decide about those that nobody ended.
#include <gtest/gtest.h>

#include <algorithm>

#include "settle/claims.hpp"
#include "support/claims_fixture.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

// In a database.
struct claimed_rows : claimed_keys {};

// Proves I7
TEST_P(claimed_rows, are_forgotten_after_their_time_if_they_have_an_answer) {
  const auto mine = claim(*one);
  one->keys->complete(click, mine.token, placed, 24h);
  claim(*one, {.who = {"shop", "ann", "unknown"}});
  world->pass(23h);
  EXPECT_EQ(forget_expired_keys(*one->db), 0);
  world->pass(2h);
  EXPECT_EQ(forget_expired_keys(*one->db), 1);
  EXPECT_EQ(outcome(*two), claim_outcome::claimed) << "as good as new";
  EXPECT_EQ(outcome(*two, {.who = {"shop", "ann", "unknown"}}), claim_outcome::unknown)
      << "kept until it is known";
}

// Proves I7: what stays for long is not walked over by every sweep
TEST_P(claimed_rows, without_an_answer_are_looked_at_once_a_day_and_hide_nothing_that_is_due) {
  for (int i = 0; i < 5; ++i) claim(*one, {.who = {"shop", "ann", "unknown " + std::to_string(i)}});
  world->pass(1h);
  const auto mine = claim(*one);
  one->keys->complete(click, mine.token, placed);
  world->pass(26h);
  EXPECT_EQ(forget_expired_keys(*one->db, 2), 1) << "behind more open ones than it looks at together";
  EXPECT_EQ(forget_expired_keys(*one->db, 2), 0);
  const auto table = one->db->speaks() == dialect::sqlite ? std::string("settle_") : std::string("settle.");
  const auto due = one->db->read().execute(
      "select count(*) from " + table + "idempotency_claims where expires_at <= $1", {one->db->env().now()});
  EXPECT_EQ(due[0][0].integer(), 0) << "not today";
  EXPECT_EQ(unknown_claims(*one->db).size(), 5u) << "operators still see them";
}

// Proves I7: who is told less than it asked for may come again much later
TEST_P(claimed_rows, without_an_answer_do_not_make_a_sweep_remove_less_than_it_may) {
  for (int i = 0; i < 20; ++i) {
    const auto key = "k-" + std::to_string(i);
    const request_identity who{"shop", "ann", key};
    const auto mine = claim(*one, {.who = who});
    if (i % 5 != 4) one->keys->complete(who, mine.token, placed);
  }
  world->pass(26h);
  EXPECT_EQ(forget_expired_keys(*one->db, 9), 9);
  EXPECT_EQ(forget_expired_keys(*one->db, 9), 7);
  EXPECT_EQ(unknown_claims(*one->db).size(), 4u);
}

// Proves I2: what the claim promises is not cut short by a completion that asks for less.
TEST_P(claimed_rows, are_kept_for_as_long_as_their_claim_or_their_completion_says) {
  const request_identity slow{"shop", "ann", "taken over"}, batched{"shop", "ann", "batched"};
  claim(*one, {.who = slow, .lease = 1s});
  world->pass(2s);
  const auto taken = claim(*two, {.who = slow, .keep = 24h * 7, .on_unknown = when_unknown::reissue});
  const auto mine = claim(*one, {.who = click, .keep = 24h * 7});
  const auto other = claim(*one, {.who = batched, .keep = 24h * 7});
  one->keys->complete(click, mine.token, placed);
  const std::vector<claim_call> completions = {claim_completion{batched, other.token.run, placed},
                                               claim_completion{slow, taken.token.run, placed}};
  one->keys->run(completions);
  world->pass(26h);
  EXPECT_EQ(forget_expired_keys(*one->db), 0);
  for (const auto& who : {click, batched, slow})
    EXPECT_EQ(outcome(*two, {.who = who}), claim_outcome::completed) << who.key;
  world->pass(24h * 6);
  EXPECT_EQ(forget_expired_keys(*one->db), 3);
}

// Proves I7
TEST_P(claimed_rows, of_unknown_outcome_are_listed_and_decided_by_operators) {
  const auto first = claim(*one);
  claim(*one, {.who = {"shop", "bob", "k-2"}});
  EXPECT_TRUE(unknown_claims(*one->db).empty());
  world->pass(1min);
  const auto all = unknown_claims(*one->db);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].service, "shop");
  const auto& anns = all[0].token.run == first.token.run ? all[0] : all[1];
  const auto& bobs = all[0].token.run == first.token.run ? all[1] : all[0];
  EXPECT_EQ(resolve_claim(*one->db, anns, placed), claim_ended::done);
  EXPECT_EQ(resolve_claim(*one->db, anns, placed), claim_ended::lost);
  EXPECT_EQ(one->keys->complete(click, first.token, {.status = 500}), claim_ended::lost) << "it was decided";
  EXPECT_EQ(claim(*two).what, placed);
  EXPECT_EQ(resolve_claim(*one->db, bobs, std::nullopt), claim_ended::done);
  EXPECT_EQ(outcome(*two, {.who = {"shop", "bob", "k-2"}}), claim_outcome::claimed);
}

// Proves I4, I7
TEST_P(claimed_rows, are_decided_once_at_every_fault_point) {
  one.reset();
  two.reset();
  const request_identity bobs{"shop", "bob", "k-2"};
  uuid bobs_run;
  const auto decide = [&](claims_process& by) {
    for (const auto& which : unknown_claims(*by.db))
      EXPECT_EQ(
          resolve_claim(*by.db, which, which.token.run == bobs_run ? std::nullopt : std::optional(placed)),
          claim_ended::done)
          << "whatever became of the commit";
  };
  const auto found = testing::explore({
      .prepare =
          [&] {
            world->clear();
            const auto dies = world->open();
            claim(*dies);
            bobs_run = claim(*dies, {.who = bobs}).token.run;
            world->pass(1min);
          },
      .run = [&](fault_points& faults) { decide(*world->open(&faults)); },
      .recover = [&] { decide(*world->open()); },
      .check =
          [&](const std::string& where) {
            const auto own = world->open();
            EXPECT_TRUE(unknown_claims(*own->db).empty()) << where;
            EXPECT_EQ(claim(*own).what, placed) << where;
            EXPECT_EQ(outcome(*own, {.who = bobs}), claim_outcome::claimed) << where;
          },
  });
  EXPECT_EQ(std::ranges::count(found.points, "claims.resolve.before"), 2);
}

// Proves I7
TEST_P(claimed_rows, whose_owner_came_back_are_not_decided_by_operators) {
  const auto mine = claim(*one);
  world->pass(1min);
  const auto all = unknown_claims(*one->db);
  ASSERT_EQ(all.size(), 1u);
  one->keys->renew(click, mine.token, 30s);
  EXPECT_EQ(resolve_claim(*one->db, all[0], std::nullopt), claim_ended::lost);
  EXPECT_EQ(one->keys->complete(click, mine.token, placed), claim_ended::done);
}

INSTANTIATE_TEST_SUITE_P(databases, claimed_rows,
                         ::testing::Values(claims_store::sqlite, claims_store::postgres), name_of);

// In Redis.
struct claimed_hashes : claimed_keys {};
INSTANTIATE_TEST_SUITE_P(servers, claimed_hashes, ::testing::Values(claims_store::redis), name_of);

// Proves I2, I7
TEST_P(claimed_hashes, are_forgotten_after_their_time_and_never_without_an_answer) {
  const auto left = [&] { return one->redis->run({"PTTL", world->redis_keys().at(0)}).integer; };
  const auto mine = claim(*one);
  EXPECT_EQ(left(), -1) << "no end";
  one->keys->complete(click, mine.token, placed, 24h);
  EXPECT_GT(left(), 86'000'000);
  EXPECT_LE(left(), 86'400'000);
}

// Proves I2: what the claim promises is not cut short by a completion that asks for less.
TEST_P(claimed_hashes, are_kept_for_as_long_as_their_claim_or_their_completion_says) {
  const auto left = [&] { return one->redis->run({"PTTL", world->redis_keys().at(0)}).integer; };
  const auto days = [](int of) { return std::int64_t{of} * 86'400'000; };
  const auto mine = claim(*one, {.who = click, .keep = 24h * 7});
  one->keys->complete(click, mine.token, placed);
  EXPECT_GT(left(), days(7) - 400'000);
  EXPECT_LE(left(), days(7));
  world->clear();
  claim(*one, {.who = click, .lease = 1s});
  world->pass(2s);
  const auto taken = claim(*two, {.who = click, .keep = 24h * 7, .on_unknown = when_unknown::reissue});
  two->keys->complete(click, taken.token, placed, 24h * 2);
  EXPECT_GT(left(), days(7) - 400'000) << "of the one that has taken it over";
}

}  // namespace
}  // namespace settle::test
