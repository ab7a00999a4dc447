#include "rabbitmq/address.hpp"

#include <gtest/gtest.h>

#include "settle/error.hpp"

namespace settle::rabbitmq {
namespace {

TEST(rabbitmq_address, has_what_the_url_says_and_the_usual_for_the_rest) {
  EXPECT_EQ(parse_url("amqp://"), address{});
  EXPECT_EQ(parse_url("amqp://mq.internal"), (address{.host = "mq.internal"}));
  EXPECT_EQ(parse_url("amqp://mq.internal/"), (address{.host = "mq.internal"}));
  EXPECT_EQ(parse_url("amqps://mq"), (address{.tls = true, .host = "mq", .port = 5671}));
  EXPECT_EQ(parse_url("amqp://mq:7000/shop"), (address{.host = "mq", .port = 7000, .vhost = "shop"}));
  EXPECT_EQ(parse_url("amqp://mq/%2Fshop%2f1"), (address{.host = "mq", .vhost = "/shop/1"}));
  EXPECT_EQ(parse_url("amqp://me:a%40b%3A%25@[::1]:7000"),
            (address{.host = "::1", .port = 7000, .user = "me", .password = "a@b:%"}));
  EXPECT_EQ(parse_url("amqp://me@mq").password, "");
  EXPECT_EQ(parse_url("amqp://me:secret@mq:7000/shop").name(), "RabbitMQ mq:7000/shop");
  EXPECT_EQ(parse_url("amqp://me:secret@mq").name(), "RabbitMQ mq:5672/");
}

TEST(rabbitmq_address, what_cannot_be_read_is_refused_without_the_password) {
  for (const std::string url :
       {"", "mq", "http://mq", "amqp:/mq", "amqp://me:secret@mq:port", "amqp://me:secret@mq:70000",
        "amqp://me:secret@mq:0", "amqp://me:secret@mq/a/b", "amqp://me:secret@[::1",
        "amqp://me:secret@[::1]7000", "amqp://me:secret%4@mq", "amqp://me:secret%xx@mq",
        "amqp://me:secret@mq?heartbeat=5"}) {
    try {
      parse_url(url);
      ADD_FAILURE() << url << " was accepted";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument) << url;
      EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace settle::rabbitmq
