// The seeds in kept_seeds.txt and kept_saga_seeds.txt, each of which found something once.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "simulation/sim_saga_world.hpp"
#include "simulation/sim_world.hpp"

namespace settle::sim {
namespace {

// One seed per line; what follows a # is for people.
std::vector<std::uint64_t> read_seeds(std::istream& list) {
  std::vector<std::uint64_t> seeds;
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word, more;
    if (!(words >> word)) continue;
    if (word.find_first_not_of("0123456789") != std::string::npos || words >> more)
      throw std::runtime_error("not one seed and a comment: " + line);
    seeds.push_back(std::stoull(word));
  }
  return seeds;
}

template <class Result>
void expect_nothing_found(const char* path, Result (*world)(const world_options&)) {
  std::ifstream list(path);
  const auto seeds = read_seeds(list);
  ASSERT_FALSE(seeds.empty()) << "no seeds in " << path;
  for (const auto seed : seeds)
    for (const auto& problem : world({.seed = seed}).problems)
      ADD_FAILURE() << "seed " << seed << ": " << problem;
}

// Proves V3
TEST(kept_seeds, find_nothing_any_more) { expect_nothing_found(SETTLE_KEPT_SEEDS, run_world); }

// Proves V3, S4
TEST(kept_seeds, of_sagas_find_nothing_any_more) {
  expect_nothing_found(SETTLE_KEPT_SAGA_SEEDS, run_saga_world);
}

TEST(kept_seeds, a_list_has_a_seed_per_line_and_comments) {
  std::istringstream good("# all of them\n\n1\n  17  # twice # is fine\n18446744073709551615\n");
  EXPECT_EQ(read_seeds(good), (std::vector<std::uint64_t>{1, 17, 18446744073709551615u}));
  for (const auto* bad : {"seed 1", "1 17", "-1", "0x11", "1,17"}) {
    std::istringstream list(bad);
    EXPECT_THROW(read_seeds(list), std::runtime_error) << bad;
  }
}

}  // namespace
}  // namespace settle::sim
