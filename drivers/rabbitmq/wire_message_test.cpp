#include "rabbitmq/wire_message.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace settle::rabbitmq {
namespace {

using namespace std::chrono_literals;

message some_message() {
  message made;
  made.id = "event-1";
  made.source = "settle:shop";
  made.type = "order.placed";
  made.topic = "orders";
  made.key = "customer-東京";
  made.subject = "order/42";
  made.content_type = "application/json";
  made.time = timestamp(1'700'000'000'123'456us);
  made.extensions = {{"correlationid", "c-1"}, {"empty", ""}};
  made.payload = "{}";
  return made;
}

std::vector<std::string> header_names(const wire_message& of) {
  std::vector<std::string> all;
  for (const auto& [name, unused] : of.headers) all.push_back(name);
  return all;
}

// Proves O8
TEST(rabbitmq_message, is_a_cloudevent_in_binary_mode) {
  const auto sent = some_message();
  outgoing out(sent, 17);
  const auto line = read_properties(out.properties());
  EXPECT_EQ(line.content_type, "application/json");
  EXPECT_EQ(line.message_id, "event-1");
  EXPECT_EQ(out.properties().delivery_mode, 2) << "durable";
  EXPECT_EQ(*line.header("cloudEvents_specversion"), "1.0");
  EXPECT_EQ(*line.header("cloudEvents_type"), "order.placed");
  EXPECT_EQ(*line.header("cloudEvents_partitionkey"), "customer-東京");
  EXPECT_EQ(*line.header("cloudEvents_time"), "2023-11-14T22:13:20.123456Z");
  EXPECT_EQ(*line.header(number_header), "17");
  EXPECT_EQ(line.header("cloudEvents_datacontenttype"), nullptr) << "that is the content type";
  for (const auto& name : header_names(line))
    EXPECT_TRUE(name.starts_with("cloudEvents_") || name == number_header) << name;
}

TEST(rabbitmq_message, is_read_as_it_was_sent) {
  const auto sent = some_message();
  outgoing out(sent, 17);
  auto line = read_properties(out.properties());
  line.body = sent.payload;
  const auto read = read_message(std::move(line), "orders");
  EXPECT_EQ(read.id, sent.id);
  EXPECT_EQ(read.source, sent.source);
  EXPECT_EQ(read.type, sent.type);
  EXPECT_EQ(read.topic, sent.topic);
  EXPECT_EQ(read.key, sent.key);
  EXPECT_EQ(read.subject, sent.subject);
  EXPECT_EQ(read.content_type, sent.content_type);
  EXPECT_EQ(read.time, sent.time);
  EXPECT_EQ(read.extensions, sent.extensions);
  EXPECT_EQ(read.payload, sent.payload);
}

TEST(rabbitmq_message, of_others_is_read_by_either_prefix_and_its_message_id) {
  const auto read = read_message({.message_id = "m-1",
                                  .headers = {{"cloudEvents:type", "order.placed"},
                                              {"cloudEvents:time", "no time"},
                                              {"cloudEvents_tenant", "7"},
                                              {"foreign", "x"}}},
                                 "orders");
  EXPECT_EQ(read.id, "m-1");
  EXPECT_EQ(read.type, "order.placed");
  EXPECT_EQ(read.time, timestamp{});
  EXPECT_EQ(read.extensions, (attributes{{"tenant", "7"}}));
  EXPECT_EQ(read_message({.message_id = "m-1", .headers = {{"cloudEvents:id", "e-1"}}}, "orders").id, "e-1");
}

TEST(rabbitmq_message, with_an_id_that_is_too_long_for_the_property_has_it_in_its_header) {
  auto sent = some_message();
  sent.id = std::string(300, 'i');
  outgoing out(sent, 1);
  auto line = read_properties(out.properties());
  EXPECT_EQ(line.message_id, "");
  EXPECT_EQ(read_message(std::move(line), "orders").id, sent.id);
}

}  // namespace
}  // namespace settle::rabbitmq
