#include <gtest/gtest.h>

#include "compose/rabbitmq.hpp"
#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle::compose {
namespace {

TEST(broker_of_a_url, that_this_build_has_no_driver_for_is_refused_with_what_to_do) {
  EXPECT_NE(missing_rabbitmq().find("build Settle with -DSETTLE_RABBITMQ=ON"), std::string::npos);
  EXPECT_EQ(test::code_of([] { open_rabbitmq("amqp://me:secret@mq"); }), errc::invalid_argument);
  EXPECT_EQ(test::code_of([] { rabbitmq_without_secrets("amqp://me:secret@mq"); }), errc::invalid_argument);
}

}  // namespace
}  // namespace settle::compose
