#include "rabbitmq/routing_key.hpp"

#include <gtest/gtest.h>

namespace settle::rabbitmq {
namespace {

TEST(rabbitmq_routing_key, is_made_from_the_message) {
  message m;
  m.topic = "payments";
  m.type = "payment.created";
  m.key = "42";
  m.subject = "order/42";
  EXPECT_EQ(routing_key_of(m, "{type}"), "payment.created");
  EXPECT_EQ(routing_key_of(m, "eu.{topic}.{key}.{subject}"), "eu.payments.42.order/42");
  EXPECT_EQ(routing_key_of(m, "always"), "always");
  EXPECT_EQ(routing_key_of(m, ""), "");
  EXPECT_LT(std::stoi(routing_key_of(m, "{lane}")), 256);
}

TEST(rabbitmq_routing_key, template_is_refused_if_it_names_something_else) {
  for (const auto* good : {"", "{type}", "a.{key}.b{lane}"})
    EXPECT_EQ(unusable_routing_key(good), "") << good;
  EXPECT_NE(unusable_routing_key("{typ}").find("{typ} is none of {topic}, {type}"), std::string::npos);
  EXPECT_EQ(unusable_routing_key("{type"), "a { has no }");
}

}  // namespace
}  // namespace settle::rabbitmq
