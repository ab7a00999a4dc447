// Bugs of sagas that the simulation finds within a bounded number of seeds; the same seeds are clean without.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/zoo.hpp"
#include "simulation/sim_saga_world.hpp"

namespace settle::sim {
namespace {

constexpr std::uint64_t seeds_max = 60;

std::optional<std::uint64_t> find(zoo::bug which, std::string_view kind) {
  zoo::present = which;
  std::optional<std::uint64_t> found;
  for (std::uint64_t seed = 1; seed <= seeds_max && !found; ++seed)
    if (std::ranges::any_of(run_saga_world({.seed = seed}).problems,
                            [&](const std::string& one) { return one.starts_with(kind); }))
      found = seed;
  zoo::present = zoo::bug::none;
  return found;
}

void expect_found_as(zoo::bug which, std::string_view kind) {
  const auto found = find(which, kind);
  ASSERT_TRUE(found) << "not found as " << kind << " within " << seeds_max << " seeds";
  const auto without = run_saga_world({.seed = *found});
  EXPECT_TRUE(without.problems.empty()) << "seed " << *found << ": " << without.problems.front();
}

// Proves V2, V3, S2
TEST(zoo_saga_simulation, undo_skips_the_unknown_is_found_as_money_taken) {
  expect_found_as(zoo::bug::undo_skips_the_unknown, "half undone");
}

// Proves V2, V3, S4
TEST(zoo_saga_simulation, frames_kept_after_failure_is_found_as_half_done) {
  expect_found_as(zoo::bug::frames_kept_after_failure, "half done");
}

// Proves V2, V3, S3
TEST(zoo_saga_simulation, deadline_recomputed_is_found_as_forgotten) {
  expect_found_as(zoo::bug::deadline_recomputed, "forgotten");
}

}  // namespace
}  // namespace settle::sim
