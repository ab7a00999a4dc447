#include "compose/kafka.hpp"

#include <gtest/gtest.h>

namespace settle::compose {
namespace {

TEST(broker_of_a_kafka_url, is_a_kafka_if_it_begins_with_kafka) {
  EXPECT_EQ(missing_kafka(), "");
  EXPECT_TRUE(is_kafka("kafka://k1,k2"));
  EXPECT_TRUE(is_kafka("kafkas://k1"));
  EXPECT_FALSE(is_kafka("kafka.db"));
  EXPECT_NE(open_kafka("kafka://me:secret@k1.invalid"), nullptr) << "nothing connects before it is used";
}

TEST(broker_of_a_kafka_url, is_shown_without_user_and_password) {
  EXPECT_EQ(kafka_without_secrets("kafkas://me:secret@k1,k2:7000"), "kafkas://k1:9092,k2:7000");
  EXPECT_EQ(kafka_without_secrets("kafka://k1"), "kafka://k1:9092");
}

}  // namespace
}  // namespace settle::compose
