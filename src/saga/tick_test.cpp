#include "saga/tick.hpp"

#include <gtest/gtest.h>

namespace settle::sagas {

inline void PrintTo(care of, std::ostream* out) {
  constexpr const char* names[] = {"plain", "careful", "single"};
  *out << names[static_cast<int>(of)];
}

namespace {

void succeed(caution& of, int times) {
  for (int i = 0; i < times; ++i) of.succeeded();
}

TEST(saga_caution, grows_with_failures_and_goes_away_with_successes) {
  caution c(care::plain);
  EXPECT_EQ(c.level(), care::plain);
  c.failed();
  EXPECT_EQ(c.level(), care::careful);
  c.failed();
  EXPECT_EQ(c.level(), care::single);
  c.failed();
  EXPECT_EQ(c.level(), care::single);
  succeed(c, 63);
  EXPECT_EQ(c.level(), care::single);
  succeed(c, 1);
  EXPECT_EQ(c.level(), care::careful);
  succeed(c, 16);
  EXPECT_EQ(c.level(), care::plain);
}

TEST(saga_caution, never_falls_below_what_the_database_is_given) {
  caution c(care::careful);
  c.failed();
  EXPECT_EQ(c.level(), care::single);
  succeed(c, 200);
  EXPECT_EQ(c.level(), care::careful);
}

}  // namespace
}  // namespace settle::sagas
