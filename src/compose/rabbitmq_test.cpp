#include "compose/rabbitmq.hpp"

#include <gtest/gtest.h>

namespace settle::compose {
namespace {

TEST(broker_of_a_url, is_a_rabbitmq_if_it_begins_with_amqp) {
  EXPECT_EQ(missing_rabbitmq(), "");
  EXPECT_TRUE(is_rabbitmq("amqp://mq"));
  EXPECT_TRUE(is_rabbitmq("amqps://mq"));
  EXPECT_FALSE(is_rabbitmq("broker.db"));
  EXPECT_NE(open_rabbitmq("amqp://me:secret@mq.invalid/shop"), nullptr)
      << "nothing connects before it is used";
}

TEST(broker_of_a_url, is_shown_without_user_and_password) {
  EXPECT_EQ(rabbitmq_without_secrets("amqps://me:secret@mq/shop"), "amqps://mq:5671/shop");
  EXPECT_EQ(rabbitmq_without_secrets("amqp://me:secret@mq:7000"), "amqp://mq:7000/");
}

}  // namespace
}  // namespace settle::compose
