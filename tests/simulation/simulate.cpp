// simulate --seed N [--seeds COUNT] [--steps N] [--bug NAME] [--world sagas] [--verbose]
//
// Runs the simulated world, or the one of sagas, under COUNT seeds, from N on; with --seed drawn, from one
// that nobody has chosen. A seed that fails prints the command that repeats it exactly. --bug exists in
// simulate_zoo only. Exit code 1 if a seed failed.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <string_view>

#include "simulation/sim_saga_world.hpp"
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
  bool sagas = false;
  bool verbose = false;
};

[[noreturn]] void usage() {
  fmt::print(stderr,
             "usage: simulate --seed N|drawn [--seeds COUNT] [--steps N] [--bug NAME] [--world sagas] "
             "[--verbose]\n");
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
    else if (flag == "--world" && argv[i] == std::string_view("sagas"))
      a.sagas = true;
    else
      usage();
  }
  return a;
}

void report(const arguments& a, std::uint64_t seed, const std::vector<std::string>& problems) {
  fmt::print("seed {} failed:\n", seed);
  for (const auto& one : problems) fmt::print("  {}\n", one);
  fmt::print("repeat it with: {} --seed {}{}{}{}\n", a.program, seed,
             a.steps == world_options().steps ? "" : fmt::format(" --steps {}", a.steps),
             a.bug.empty() ? "" : " --bug " + a.bug, a.sagas ? " --world sagas" : "");
  std::fflush(stdout);
}

// What nobody in the world has caught is a problem of its seed, and the others still run.
template <class Result>
Result run_to_its_end(Result (*world)(const world_options&), const arguments& a, std::uint64_t seed) try {
  return world({.seed = seed, .steps = a.steps, .verbose = a.verbose});
} catch (const std::exception& e) {
  Result ended;
  ended.problems.emplace_back(e.what());
  return ended;
}

void sum_up(world_result& sum, const world_result& done) {
  sum.orders += done.orders;
  sum.dead_letters += done.dead_letters;
}
std::string in_words(const world_result& sum) {
  return fmt::format("{} orders, {} dead letters", sum.orders, sum.dead_letters);
}

void sum_up(saga_world_result& sum, const saga_world_result& done) {
  sum.completed += done.completed;
  sum.undone += done.undone;
  sum.held += done.held;
}
std::string in_words(const saga_world_result& sum) {
  return fmt::format("{} sagas completed, {} undone, {} held", sum.completed, sum.undone, sum.held);
}

template <class Result>
int run_seeds(Result (*world)(const world_options&), const arguments& a) {
  std::uint64_t failed = 0;
  Result sum;
  if (a.seeds > 1) fmt::print("simulating seeds {} to {}\n", a.seed, a.seed + a.seeds - 1);
  std::fflush(stdout);
  for (auto seed = a.seed; seed < a.seed + a.seeds; ++seed) {
    const auto done = run_to_its_end(world, a, seed);
    sum_up(sum, done);
    sum.crashes += done.crashes;
    sum.power_losses += done.power_losses;
    sum.trace ^= done.trace;
    if (done.problems.empty()) continue;
    ++failed;
    report(a, seed, done.problems);
  }
  fmt::print("{} seeds, {} failed: {}, {} crashes, {} power losses, trace {:016x}\n", a.seeds, failed,
             in_words(sum), sum.crashes, sum.power_losses, sum.trace);
  return failed == 0 ? 0 : 1;
}

int run(const arguments& a) {
  if (!a.bug.empty() && !set_bug(a.bug)) {
    fmt::print(stderr, "no bug '{}' in this program; {}\n", a.bug, bugs_here());
    return 2;
  }
  return a.sagas ? run_seeds(run_saga_world, a) : run_seeds(run_world, a);
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
