// The epoch of a claim grows with every holder of its key, whatever became of the holder before, so that a
// third party may refuse a lower one than it has seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <mutex>
#include <thread>

#include "settle/claims.hpp"
#include "support/claims_fixture.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

struct claim_epochs : claimed_keys {};

// Proves I7
TEST_P(claim_epochs, grow_over_a_release_although_the_clock_was_set_back) {
  const auto first = claim(*one);
  ASSERT_EQ(one->keys->release(click, first.token), claim_ended::done);
  world->set_clock_back(1h);
  const auto second = claim(*two);
  ASSERT_EQ(second.outcome, claim_outcome::claimed);
  EXPECT_GT(second.token.epoch, first.token.epoch);
  ASSERT_EQ(two->keys->release(click, second.token), claim_ended::done);
  EXPECT_GT(claim(*one).token.epoch, second.token.epoch);
}

// Proves I7
TEST_P(claim_epochs, grow_over_take_overs_and_the_release_after_them) {
  std::int64_t last = claim(*one, {.who = click, .lease = 1s}).token.epoch;
  for (int n = 0; n < 3; ++n) {
    world->pass(2s);
    const auto taken = claim(*two, {.who = click, .lease = 1s, .on_unknown = when_unknown::reissue});
    ASSERT_EQ(taken.outcome, claim_outcome::claimed);
    EXPECT_GT(taken.token.epoch, last);
    last = taken.token.epoch;
    if (n < 2) continue;
    ASSERT_EQ(two->keys->release(click, taken.token), claim_ended::done);
  }
  world->set_clock_back(1h);
  EXPECT_GT(claim(*one).token.epoch, last);
}

// What comes together may be one step for the store, with one reading of its clock. Proves I7
TEST_P(claim_epochs, grow_however_fast_a_key_is_released_and_claimed_again) {
  std::int64_t last = 0;
  for (int n = 0; n < 20; ++n) {
    std::vector<claim_call> calls;
    for (int holder = 0; holder < 3; ++holder) {
      const auto run = one->keys->env().ids->next();
      calls.emplace_back(claim_request{.who = click, .run = run});
      calls.emplace_back(claim_release{click, run});
    }
    for (const auto& answered : one->keys->run(calls)) {
      const auto* got = std::get_if<claim_result>(&answered);
      if (got == nullptr || got->outcome != claim_outcome::claimed) continue;
      ASSERT_GT(got->token.epoch, last);
      last = got->token.epoch;
    }
  }
}

// Many connections at one key: whoever has it sees that it is the latest. Proves I7
TEST_P(claim_epochs, grow_however_claims_and_releases_meet) {
  constexpr int threads = 6, rounds = 20;
  std::vector<std::unique_ptr<claims_process>> processes;
  for (int n = 0; n < threads; ++n) processes.push_back(world->open());
  std::latch start(threads);
  std::mutex mutex;
  std::int64_t last = 0;
  int falls = 0;
  {
    std::vector<std::jthread> all;
    for (int n = 0; n < threads; ++n)
      all.emplace_back([&, n] {
        auto& keys = *processes[static_cast<std::size_t>(n)]->keys;
        start.arrive_and_wait();
        for (int had = 0; had < rounds;) {
          const auto got = keys.claim({.who = click});
          if (got.outcome != claim_outcome::claimed) continue;
          ++had;
          {
            const std::scoped_lock lock(mutex);
            falls += got.token.epoch <= last ? 1 : 0;
            last = got.token.epoch;
          }
          keys.release(click, got.token);
        }
      });
  }
  EXPECT_EQ(falls, 0) << "of " << threads * rounds;
}

struct claim_epochs_in_a_database : claimed_keys {};

// Proves I7
TEST_P(claim_epochs_in_a_database, grow_after_the_record_was_forgotten) {
  const auto first = claim(*one);
  one->keys->complete(click, first.token, placed);
  world->pass(26h);
  ASSERT_EQ(forget_expired_keys(*one->db), 1);
  world->set_clock_back(30h);
  const auto next = claim(*two);
  ASSERT_EQ(next.outcome, claim_outcome::claimed);
  EXPECT_GT(next.token.epoch, first.token.epoch);
}

// Proves I7
TEST_P(claim_epochs_in_a_database, grow_after_an_operator_has_freed_the_key) {
  const auto first = claim(*one, {.who = click, .lease = 1s});
  world->pass(2s);
  const auto all = unknown_claims(*one->db);
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(resolve_claim(*one->db, all[0], std::nullopt), claim_ended::done);
  world->set_clock_back(1h);
  EXPECT_GT(claim(*two).token.epoch, first.token.epoch);
}

INSTANTIATE_TEST_SUITE_P(stores, claim_epochs,
                         ::testing::Values(claims_store::sqlite, claims_store::postgres, claims_store::redis),
                         name_of);
INSTANTIATE_TEST_SUITE_P(stores, claim_epochs_in_a_database,
                         ::testing::Values(claims_store::sqlite, claims_store::postgres), name_of);

}  // namespace
}  // namespace settle::test
