#include "compose/service_broker.hpp"

#include <gtest/gtest.h>

#include "compose/kafka.hpp"
#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle::compose {
namespace {

TEST(broker_of_a_service, is_a_server_or_a_file_by_its_name) {
  for (const auto* url : {"amqp://mq", "amqps://mq", "kafka://k1,k2", "kafkas://k1"})
    EXPECT_TRUE(is_broker_server(url)) << url;
  for (const auto* file : {"broker.db", "kafka.db", "/var/lib/kafka"})
    EXPECT_FALSE(is_broker_server(file)) << file;
}

TEST(broker_of_a_service, that_nobody_knows_is_refused) {
  for (const auto* url : {"", "nats://me:secret@n1"})
    EXPECT_EQ(test::code_of([&] { check_broker(url); }), errc::invalid_argument) << url;
}

TEST(broker_of_a_service, that_is_a_kafka_is_checked_and_shown_without_its_password) {
  if (!missing_kafka().empty()) GTEST_SKIP() << missing_kafka();
  EXPECT_EQ(test::code_of([] { check_broker("kafka://me:secret@k1"); }), std::nullopt);
  EXPECT_EQ(test::code_of([] { check_broker("kafka://me:secret@"); }), errc::invalid_argument);
  EXPECT_EQ(broker_without_secrets("kafka://me:secret@k1"), "kafka://k1:9092");
  EXPECT_EQ(missing_broker_driver("kafka://k1"), "");
  EXPECT_NE(open_broker("kafka://me:secret@k1.invalid"), nullptr) << "nothing connects before it is used";
}

}  // namespace
}  // namespace settle::compose
