#include "base/sortable.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace settle {
namespace {

TEST(sortable_text, sorts_as_its_numbers_do) {
  const std::vector<std::int64_t> numbers{
      0, 1, 9, 10, 11, 99, 100, 12'345, 99'999, 100'000, 1LL << 51, std::numeric_limits<std::int64_t>::max()};
  std::vector<std::string> texts;
  for (const auto one : numbers) texts.push_back(sortable({one}));
  EXPECT_EQ(std::ranges::adjacent_find(texts, std::greater_equal<>()), texts.end());
  EXPECT_EQ(sortable({3, 120}), "a3c120");
}

TEST(sortable_text, of_several_numbers_sorts_by_the_first_that_differs) {
  EXPECT_LT(sortable({9, 100}), sortable({10, 1}));
  EXPECT_LT(sortable({10, 9}), sortable({10, 10}));
  EXPECT_LT(sortable({10, 9}), sortable({10, 9, 0})) << "what ends first sorts first";
  EXPECT_LT(sortable({10, 9, 7}), sortable({10, 10}));
}

}  // namespace
}  // namespace settle
