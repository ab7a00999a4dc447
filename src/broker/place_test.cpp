#include <gtest/gtest.h>

#include "settle/driver/broker_inspection.hpp"
#include "support/expect_error.hpp"

namespace settle {
namespace {

TEST(broker_place, sorts_as_its_bytes_do_whatever_their_sign) {
  const broker_place first, low(std::string_view("\x01", 1)), high(std::string_view("\xff", 1));
  EXPECT_LT(first, low) << "nothing is before every message";
  EXPECT_LT(low, high);
  EXPECT_LT(low, broker_place(std::string_view("\x01\x00", 2)));
  EXPECT_EQ(low, broker_place(std::string_view("\x01", 1)));
}

TEST(broker_place, has_sixteen_bytes_at_most) {
  const std::string longest(16, 'x');
  EXPECT_EQ(broker_place(longest).bytes(), longest);
  EXPECT_EQ(test::code_of([&] { broker_place(longest + "x"); }), errc::invalid_argument);
}

}  // namespace
}  // namespace settle
