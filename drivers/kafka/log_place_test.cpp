#include "kafka/log_place.hpp"

#include <gtest/gtest.h>

#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle::inline v0::kafka {
namespace {

TEST(kafka_place, becomes_a_position_that_sorts_as_it_does_and_comes_back) {
  const log_place in_order[] = {{0, 0, 0},
                                {0, 0, 255},
                                {0, 0, 256},
                                {0, 1, 0},
                                {1, 0, 0},
                                {1'700'000'000'000, 3, 7},
                                {1'700'000'000'000, 1000, 0},
                                {1'700'000'000'001, 0, (std::int64_t{1} << 56) - 1}};
  for (std::size_t i = 0; i < std::size(in_order); ++i) {
    EXPECT_EQ(place_of(position_of(in_order[i])), in_order[i]);
    if (i > 0) {
      EXPECT_LT(position_of(in_order[i - 1]), position_of(in_order[i])) << i;
    }
  }
}

TEST(kafka_place, is_not_read_from_the_position_of_another_broker) {
  EXPECT_EQ(test::code_of([] { place_of(log_position::of(7)); }), errc::invalid_argument);
}

}  // namespace
}  // namespace settle::inline v0::kafka
