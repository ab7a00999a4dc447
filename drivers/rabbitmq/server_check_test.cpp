#include "rabbitmq/server_check.hpp"

#include <gtest/gtest.h>

#include "rabbitmq/frames.hpp"

namespace settle::rabbitmq {
namespace {

const std::set<std::string, std::less<>> everything{"publisher_confirms", "basic.nack",
                                                    "consumer_cancel_notify", "connection.blocked"};

// Proves O7
TEST(rabbitmq_server_check, takes_servers_from_3_10_on) {
  for (const auto* good : {"3.10.0", "3.10.8", "3.13.7", "4.0.5", "4.1.0-rc.1"})
    EXPECT_EQ(lack_of({"RabbitMQ", good, everything}), "") << good;
  for (const auto* old : {"3.9.29", "3.8.0", "2.7.1", "", "unknown"})
    EXPECT_NE(lack_of({"RabbitMQ", old, everything}).find("needs 3.10 or newer"), std::string::npos) << old;
}

// Proves O7
TEST(rabbitmq_server_check, names_what_another_server_cannot_do) {
  auto some = everything;
  some.erase("connection.blocked");
  const auto said = lack_of({"Other", "1.0", some});
  EXPECT_NE(said.find("Other 1.0 and cannot do connection.blocked"), std::string::npos) << said;
}

TEST(rabbitmq_server_check, reads_what_the_server_says_of_itself) {
  table can;
  can.add("basic.nack", true).add("publisher_confirms", false);
  table properties;
  properties.add("product", std::string_view("RabbitMQ"))
      .add("version", std::string_view("3.12.1"))
      .add("capabilities", can.get());
  const auto facts = read_facts(properties.get());
  EXPECT_EQ(facts.product, "RabbitMQ");
  EXPECT_EQ(major_version(facts), 3);
  EXPECT_EQ(facts.capabilities, (std::set<std::string, std::less<>>{"basic.nack"}));
}

}  // namespace
}  // namespace settle::rabbitmq
