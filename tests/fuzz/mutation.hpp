// A corpus, and seeded mutations of it, for the fuzz entries that run as tests.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "settle/testing.hpp"

namespace settle::fuzz {

inline std::vector<std::string> corpus(const std::filesystem::path& folder) {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::ranges::sort(all);  // the order of a folder is nobody's choice
  return all;
}

// Flips, drops, doubles, cuts and splices, a few times over. `pieces` are what this kind of input is made of.
inline std::string mutated(std::string text, const std::vector<std::string>& others,
                           const std::vector<std::string>& pieces, testing::seeded_random& random) {
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
        text.insert(at, pieces[random.below(pieces.size())]);
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

}  // namespace settle::fuzz
