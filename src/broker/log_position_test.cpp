#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "settle/driver/broker.hpp"
#include "support/expect_error.hpp"

namespace settle {
namespace {

using namespace std::string_literals;

TEST(log_position, of_a_number_sorts_as_the_numbers_do) {
  const std::vector<std::int64_t> numbers{
      0, 1, 9, 10, 127, 128, 255, 256, 65'536, 1'000'000'007, std::numeric_limits<std::int64_t>::max()};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto at = log_position::of(numbers[i]);
    EXPECT_EQ(at.number(), numbers[i]);
    EXPECT_EQ(at.text(), std::to_string(numbers[i]));
    if (i == 0) continue;
    EXPECT_LT(log_position::of(numbers[i - 1]), at) << numbers[i];
  }
}

TEST(log_position, of_bytes_sorts_byte_by_byte_and_is_no_number) {
  const log_position low("\x00\x01 sixteen bytes"s.substr(0, 16)), high("\x80"s);
  EXPECT_LT(low, high);
  EXPECT_EQ(high.number(), std::nullopt);
  EXPECT_EQ(high.text(), "0x80");
  EXPECT_EQ(log_position(std::string(8, '\xff')).number(), std::nullopt) << "no position is negative";
}

TEST(log_position, none_sorts_before_all_others_and_has_no_text) {
  const log_position none;
  EXPECT_TRUE(none.empty());
  EXPECT_LT(none, log_position::of(0));
  EXPECT_EQ(none.text(), "");
  EXPECT_EQ(none, log_position(""));
}

TEST(log_position, that_is_negative_or_too_long_is_refused) {
  EXPECT_EQ(test::code_of([] { log_position::of(-1); }), errc::invalid_argument);
  EXPECT_EQ(test::code_of([] { log_position(std::string(17, 'x')); }), errc::invalid_argument);
  EXPECT_EQ(test::code_of([] { log_position(std::string(16, 'x')); }), std::nullopt);
}

}  // namespace
}  // namespace settle
