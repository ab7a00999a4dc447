#include "kafka/address.hpp"

#include <gtest/gtest.h>

#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle::inline v0::kafka {
namespace {

using servers = std::vector<std::string>;

TEST(kafka_address, of_a_url_has_its_servers_and_whoever_we_are) {
  EXPECT_EQ(parse_url("kafka://k1").servers, servers{"k1:9092"});
  EXPECT_EQ(parse_url("kafka://k1:7000,k2,[::1]:7001/").servers,
            (servers{"k1:7000", "k2:9092", "[::1]:7001"}));
  const auto full = parse_url("kafkas://me:a%40b%2fc@k1,k2");
  EXPECT_TRUE(full.tls);
  EXPECT_EQ(full.user, "me");
  EXPECT_EQ(full.password, "a@b/c");
  EXPECT_EQ(full.list(), "k1:9092,k2:9092");
}

TEST(kafka_address, is_named_without_user_and_password) {
  EXPECT_EQ(parse_url("kafka://me:secret@k1").name(), "Kafka k1:9092");
}

TEST(kafka_address, that_cannot_be_read_is_refused_without_being_quoted) {
  for (const auto* url : {"amqp://me:secret@k1", "kafka://", "kafka://me:secret@", "kafka://k1,,k2",
                          "kafka://k1:x", "kafka://k1:0", "kafka://k1/secret", "kafka://k1?password=secret",
                          "kafka://secret@k1", "kafka://:secret@k1", "kafka://me:%zz@k1"}) {
    EXPECT_EQ(test::code_of([&] { parse_url(url); }), errc::invalid_argument) << url;
    try {
      parse_url(url);
    } catch (const error& e) {
      EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace settle::inline v0::kafka
