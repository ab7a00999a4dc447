// A shop whose hosts run sagas on one simulated machine, with a bank that is called over a bad line. As the
// other world (sim_world.hpp) it advances only by steps that the seed chooses.
#pragma once

#include "simulation/sim_world.hpp"

namespace settle::sim {

struct saga_world_result {
  std::vector<std::string> problems;
  std::uint64_t trace = 0;
  std::int64_t completed = 0;
  std::int64_t undone = 0;  // also those of which nothing had run
  std::int64_t held = 0;
  std::int64_t crashes = 0;
  std::int64_t power_losses = 0;
};

saga_world_result run_saga_world(const world_options& options);

}  // namespace settle::sim
