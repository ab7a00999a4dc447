// The fuzz entry over its corpus and a fixed number of seeded mutations of it.
#include <gtest/gtest.h>

#include <string>

#include "fuzz/entries.hpp"
#include "fuzz/mutation.hpp"

namespace settle {
namespace {

// Proves A3
TEST(webhook_fuzz, corpus_and_seeded_mutations_neither_crash_nor_get_in) {
  const auto seeds = fuzz::corpus(SETTLE_WEBHOOK_CORPUS);
  std::vector<std::string> pieces;
  for (const char one : std::string_view(",= :.\n\0{}\"[", 11)) pieces.emplace_back(1, one);
  ASSERT_GE(seeds.size(), 8u);
  for (const auto& seed : seeds) fuzz::webhook_headers(seed);
  testing::seeded_random random(6);
  for (int i = 0; i < 20'000; ++i)
    fuzz::webhook_headers(fuzz::mutated(seeds[random.below(seeds.size())], seeds, pieces, random));
}

}  // namespace
}  // namespace settle
