// The simulated world itself: repeatable, and busy enough to prove something.
#include "simulation/sim_world.hpp"

#include <gtest/gtest.h>

namespace settle::sim {
namespace {

// Proves V3
TEST(sim_world, one_seed_does_exactly_the_same_twice) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const auto first = run_world({.seed = seed});
    run_world({.seed = seed + 100, .steps = 50});  // whatever ran in between leaves no trace
    const auto second = run_world({.seed = seed});
    EXPECT_EQ(first.trace, second.trace) << "seed " << seed;
    EXPECT_EQ(first.orders, second.orders) << "seed " << seed;
  }
}

// Proves V3
TEST(sim_world, another_seed_does_something_else) {
  EXPECT_NE(run_world({.seed = 1}).trace, run_world({.seed = 2}).trace);
}

// Proves V3
TEST(sim_world, a_few_seeds_see_crashes_power_losses_and_dead_letters_and_still_place_orders) {
  world_result sum;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto done = run_world({.seed = seed});
    EXPECT_TRUE(done.problems.empty()) << "seed " << seed << ": " << done.problems.front();
    sum.orders += done.orders;
    sum.crashes += done.crashes;
    sum.power_losses += done.power_losses;
    sum.dead_letters += done.dead_letters;
  }
  EXPECT_GT(sum.orders, 300);
  EXPECT_GT(sum.crashes, 30);
  EXPECT_GT(sum.power_losses, 20);
  EXPECT_GT(sum.dead_letters, 20);
}

}  // namespace
}  // namespace settle::sim
