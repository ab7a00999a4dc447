#include "base/nearest_name.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace settle::inline v0 {
namespace {

constexpr std::size_t compared_bytes_max = 64;

}  // namespace

std::size_t edit_distance(std::string_view left, std::string_view right) {
  const auto width = right.size() + 1;
  std::vector<std::size_t> before(width), previous(width), current(width);
  for (std::size_t j = 0; j < width; ++j) previous[j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const bool same = left[i - 1] == right[j - 1];
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous.back();
}

std::string nearest_name(std::string_view mistyped, std::span<const std::string> candidates) {
  mistyped = mistyped.substr(0, compared_bytes_max);
  std::string nearest;
  auto smallest = std::numeric_limits<std::size_t>::max();
  for (const auto& one : candidates) {
    const bool is_last_part = one.ends_with("." + std::string(mistyped));
    const bool is_beginning = one.starts_with(std::string(mistyped) + "_");
    const auto distance = is_last_part || is_beginning ? 0 : edit_distance(mistyped, one);
    if (distance >= smallest) continue;
    smallest = distance;
    nearest = one;
  }
  return nearest;
}

}  // namespace settle::inline v0
