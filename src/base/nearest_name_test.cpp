#include "base/nearest_name.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace settle {
namespace {

// It may come from outside, and comparing costs a step for each pair of letters.
TEST(nearest_name, of_a_huge_name_goes_by_its_beginning) {
  const std::string beginning = "lease_ms" + std::string(56, '_');
  const std::vector<std::string> known{std::string(100, 'z'), beginning};
  EXPECT_EQ(nearest_name(beginning + std::string(1U << 20U, 'z'), known), beginning);
}

}  // namespace
}  // namespace settle
