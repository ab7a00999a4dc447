// Keys that are claimed by two processes, on a store.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

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

}  // namespace settle::test
