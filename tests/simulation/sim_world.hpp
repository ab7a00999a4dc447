// A whole system under a seed: producers, relays, the embedded broker and consumers on one simulated
// machine. It advances only by steps that the seed chooses, so a run can be repeated exactly.
//
//   auto done = sim::run_world({.seed = 4711});
//   if (!done.problems.empty()) …
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace settle::sim {

struct world_options {
  std::uint64_t seed = 1;
  int steps = 300;
  bool verbose = false;  // print every step
};

struct world_result {
  std::vector<std::string> problems;  // what the checks found; empty: everything held
  std::uint64_t trace = 0;            // a hash of everything that was done, in order
  std::int64_t orders = 0;            // committed
  std::int64_t crashes = 0;
  std::int64_t power_losses = 0;
  std::int64_t dead_letters = 0;  // all of them replayed, or copies of what was applied long ago
};

world_result run_world(const world_options& options);

}  // namespace settle::sim
