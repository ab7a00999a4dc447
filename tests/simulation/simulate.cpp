// simulate --seed N [--seeds COUNT] [--steps N] [--bug NAME] [--verbose]
//
// Runs the simulated world under COUNT seeds, from N on; with --seed drawn, from one that nobody has chosen.
// A seed that fails prints the command that repeats it exactly. --bug exists in simulate_zoo only. Exit code
// 1 if a seed failed.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <string_view>

#include "simulation/sim_world.hpp"
#include "simulation/sim_zoo.hpp"

namespace settle::sim {
namespace {

struct arguments {
  std::string program;
  std::uint64_t seed = 1;
  std::uint64_t seeds = 1;
  int steps = world_options().steps;
  std::string bug = {};
  bool verbose = false;
};

[[noreturn]] void usage() {
  fmt::print(stderr, "usage: simulate --seed N|drawn [--seeds COUNT] [--steps N] [--bug NAME] [--verbose]\n");
  std::exit(2);
}

arguments parse(int argc, char** argv) {
  arguments a{.program = argv[0]};
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--verbose") {
      a.verbose = true;
      continue;
    }
    if (++i == argc) usage();
    if (flag == "--seed")
      a.seed =
          argv[i] == std::string_view("drawn") ? std::random_device()() : std::strtoull(argv[i], nullptr, 10);
    else if (flag == "--seeds")
      a.seeds = std::strtoull(argv[i], nullptr, 10);
    else if (flag == "--steps")
      a.steps = std::atoi(argv[i]);
    else if (flag == "--bug")
      a.bug = argv[i];
    else
      usage();
  }
  return a;
}

void report(const arguments& a, std::uint64_t seed, const world_result& done) {
  fmt::print("seed {} failed:\n", seed);
  for (const auto& one : done.problems) fmt::print("  {}\n", one);
  fmt::print("repeat it with: {} --seed {}{}{}\n", a.program, seed,
             a.steps == world_options().steps ? "" : fmt::format(" --steps {}", a.steps),
             a.bug.empty() ? "" : " --bug " + a.bug);
  std::fflush(stdout);
}

// What nobody in the world has caught is a problem of its seed, and the others still run.
world_result run_to_its_end(const arguments& a, std::uint64_t seed) try {
  return run_world({.seed = seed, .steps = a.steps, .verbose = a.verbose});
} catch (const std::exception& e) {
  world_result ended;
  ended.problems.emplace_back(e.what());
  return ended;
}

int run(const arguments& a) {
  if (!a.bug.empty() && !set_bug(a.bug)) {
    fmt::print(stderr, "no bug '{}' in this program; {}\n", a.bug, bugs_here());
    return 2;
  }
  std::uint64_t failed = 0;
  world_result sum;
  if (a.seeds > 1) fmt::print("simulating seeds {} to {}\n", a.seed, a.seed + a.seeds - 1);
  std::fflush(stdout);
  for (auto seed = a.seed; seed < a.seed + a.seeds; ++seed) {
    const auto done = run_to_its_end(a, seed);
    sum.orders += done.orders;
    sum.crashes += done.crashes;
    sum.power_losses += done.power_losses;
    sum.dead_letters += done.dead_letters;
    sum.trace ^= done.trace;
    if (done.problems.empty()) continue;
    ++failed;
    report(a, seed, done);
  }
  fmt::print("{} seeds, {} failed: {} orders, {} crashes, {} power losses, {} dead letters, trace {:016x}\n",
             a.seeds, failed, sum.orders, sum.crashes, sum.power_losses, sum.dead_letters, sum.trace);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace settle::sim

int main(int argc, char** argv) {
  try {
    return settle::sim::run(settle::sim::parse(argc, argv));
  } catch (const std::exception& e) {
    fmt::print(stderr, "simulate: {}\n", e.what());
    return 2;
  }
}
