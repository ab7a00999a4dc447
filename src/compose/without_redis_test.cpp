#include <gtest/gtest.h>

#include "compose/redis.hpp"
#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle::compose {
namespace {

TEST(redis_of_a_url, that_this_build_has_no_driver_for_is_refused_with_what_to_do) {
  EXPECT_NE(missing_redis().find("build Settle with -DSETTLE_REDIS=ON"), std::string::npos);
  EXPECT_EQ(test::code_of([] { open_redis("redis://:secret@cache"); }), errc::invalid_argument);
  EXPECT_EQ(test::code_of([] { redis_without_secrets("redis://:secret@cache"); }), errc::invalid_argument);
}

}  // namespace
}  // namespace settle::compose
