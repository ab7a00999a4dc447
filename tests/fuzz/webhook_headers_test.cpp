// The fuzz entry over its corpus and a fixed number of seeded mutations of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "settle/testing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace settle {
namespace {

std::vector<std::string> corpus() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(SETTLE_WEBHOOK_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::ranges::sort(all);  // the order of a folder is nobody's choice
  return all;
}

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

// Flips, drops, doubles, cuts and splices, a few times over.
std::string mutated(std::string text, const std::vector<std::string>& others,
                    testing::seeded_random& random) {
  for (auto times = 1 + random.below(6); times > 0; --times) {
    const auto at = text.empty() ? 0 : random.below(text.size());
    switch (random.below(6)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text.erase(at, random.below(9));
        break;
      case 2:
        text.insert(at, text.substr(at, random.below(64)));
        break;
      case 3:
        text.insert(at, 1, ",= :.\n\0{}\"["[random.below(11)]);
        break;
      case 4:
        text.resize(at);
        break;
      default: {
        const auto& other = others[random.below(others.size())];
        text = text.substr(0, at) + other.substr(random.below(other.size() + 1));
      }
    }
  }
  return text;
}

// Proves A3
TEST(webhook_fuzz, corpus_and_seeded_mutations_neither_crash_nor_get_in) {
  const auto seeds = corpus();
  ASSERT_GE(seeds.size(), 8u);
  for (const auto& seed : seeds) run(seed);
  testing::seeded_random random(6);
  for (int i = 0; i < 20'000; ++i) run(mutated(seeds[random.below(seeds.size())], seeds, random));
}

}  // namespace
}  // namespace settle
