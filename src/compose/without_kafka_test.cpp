#include <gtest/gtest.h>

#include "compose/kafka.hpp"
#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle::compose {
namespace {

TEST(broker_of_a_kafka_url, that_this_build_has_no_driver_for_is_refused_with_what_to_do) {
  EXPECT_NE(missing_kafka().find("build Settle with -DSETTLE_KAFKA=ON"), std::string::npos);
  EXPECT_EQ(test::code_of([] { open_kafka("kafka://me:secret@k1"); }), errc::invalid_argument);
  EXPECT_EQ(test::code_of([] { kafka_without_secrets("kafka://me:secret@k1"); }), errc::invalid_argument);
}

}  // namespace
}  // namespace settle::compose
