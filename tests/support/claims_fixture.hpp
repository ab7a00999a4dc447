// Keys that are claimed by two processes, on a store.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "settle/claims.hpp"
#include "support/claims_world.hpp"

namespace settle::test {

inline constexpr request_identity click{"shop", "ann", "k-1"};
inline const answer placed{
    .status = 201, .headers = {{"Location", "/orders/7"}}, .body = std::string("{\"id\":7}\0", 9)};

inline void PrintTo(claims_store of, std::ostream* out) {
  *out << (of == claims_store::sqlite ? "sqlite" : of == claims_store::postgres ? "postgres" : "redis");
}

struct claimed_keys : ::testing::TestWithParam<claims_store> {
  void SetUp() override {
    if (const auto missing = claims_world::missing(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
    world.emplace(GetParam());
    one = world->open();
    two = world->open();
  }

  claim_result claim(claims_process& by, const claim_request& what = {.who = click}) {
    return by.keys->claim(what);
  }
  claim_outcome outcome(claims_process& by, const claim_request& what = {.who = click}) {
    return claim(by, what).outcome;
  }

  std::optional<claims_world> world;
  std::unique_ptr<claims_process> one, two;
};

inline std::string name_of(const ::testing::TestParamInfo<claims_store>& of) {
  return ::testing::PrintToString(of.param);
}

// A client that sees its request through: what it does outside happens once, whatever fails or dies. After a
// crash the next one asks the outside, which knows. False: somebody else is at it, and it gave up.
inline bool see_through(claims_process& by) {
  for (int tries = 0; tries < 10; ++tries) {
    const auto got = by.keys->claim({.who = click, .on_unknown = when_unknown::ask});
    if (got.outcome == claim_outcome::completed) return true;
    if (got.outcome == claim_outcome::ask && by.acted("k-1") == 0) {
      by.keys->release(click, got.token);
      continue;
    }
    if (got.outcome == claim_outcome::claimed) by.act("k-1");
    if (got.outcome == claim_outcome::claimed || got.outcome == claim_outcome::ask)
      by.keys->complete(click, got.token, placed);
  }
  return false;
}

// After a kill: the server may hold for a moment what the process had open.
inline void see_through_after_a_kill(claims_world& world) {
  const auto own = world.open();
  for (int tries = 0; tries < 1000 && !see_through(*own); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace settle::test
