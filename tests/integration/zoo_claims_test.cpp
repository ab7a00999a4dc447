// The bug that most stores of idempotency keys have: a lease that ends makes the key free.
#include <gtest/gtest.h>

#include "base/zoo.hpp"
#include "settle/claims.hpp"
#include "settle/sqlite.hpp"
#include "support/claims_world.hpp"

namespace settle::test {
namespace {

constexpr request_identity click{"shop", "ann", "k-1"};

// An owner that is paused between its deed and its completion, and somebody who sends the request again.
// Gives how often it was done.
std::int64_t deeds_with_a_paused_owner() {
  claims_world world(claims_store::sqlite);
  const auto paused = world.open();
  const auto second = world.open();
  const auto first = paused->keys->claim({.who = click});
  paused->act("k-1");
  world.pass(std::chrono::minutes(1));
  const auto again = second->keys->claim({.who = click});
  if (again.outcome == claim_outcome::claimed) {
    second->act("k-1");
    second->keys->complete(click, again.token, {.status = 201});
  }
  paused->keys->complete(click, first.token, {.status = 201});
  return paused->acted("k-1");
}

// Proves V3, I7
TEST(zoo_claims, a_lease_that_frees_the_key_doubles_and_is_found) {
  EXPECT_EQ(deeds_with_a_paused_owner(), 1);
  zoo::present = zoo::bug::lease_frees_the_key;
  EXPECT_EQ(deeds_with_a_paused_owner(), 2);
  zoo::present = zoo::bug::none;
}

// Of two holders that follow each other, by a clock that was set back meanwhile.
bool the_second_epoch_is_higher() {
  claims_world world(claims_store::sqlite);
  const auto process = world.open();
  const auto first = process->keys->claim({.who = click});
  process->keys->release(click, first.token);
  world.set_clock_back(std::chrono::hours(1));
  return process->keys->claim({.who = click}).token.epoch > first.token.epoch;
}

// Proves V3, I7
TEST(zoo_claims, an_epoch_by_the_clock_falls_and_is_found) {
  EXPECT_TRUE(the_second_epoch_is_higher());
  zoo::present = zoo::bug::epoch_by_the_clock;
  EXPECT_FALSE(the_second_epoch_is_higher());
  zoo::present = zoo::bug::none;
}

}  // namespace
}  // namespace settle::test
