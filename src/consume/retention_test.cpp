#include "consume/retention.hpp"

#include <gtest/gtest.h>

#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle::consume {
namespace {

// A broker of the user's own.
TEST(places, a_negative_position_is_refused_and_does_not_end_the_process) {
  delivery from;
  from.content.id = "1";
  from.tag.position = 7;
  EXPECT_EQ(place_of(from).order, "a7");
  from.tag.position = -1;
  EXPECT_EQ(test::code_of([&] { place_of(from); }), errc::invalid_argument);
}

}  // namespace
}  // namespace settle::consume
