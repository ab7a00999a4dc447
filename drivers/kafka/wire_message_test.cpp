#include "kafka/wire_message.hpp"

#include <gtest/gtest.h>

namespace settle::inline v0::kafka {
namespace {

message order() {
  message made;
  made.id = "e-1";
  made.source = "settle:shop";
  made.type = "order.placed";
  made.topic = "orders";
  made.key = "42";
  made.content_type = "application/json";
  made.time = timestamp(duration(1'700'000'000'123'456));
  made.extensions = {{"correlationid", "c-1"}, {"empty", ""}};
  made.payload = "{}";
  return made;
}

// Proves O8
TEST(kafka_message, is_written_as_a_binary_event_and_read_back) {
  const auto sent = order();
  const auto written = headers_of(sent);
  EXPECT_EQ(written, (headers{{"ce_specversion", "1.0"},
                              {"ce_id", "e-1"},
                              {"ce_source", "settle:shop"},
                              {"ce_type", "order.placed"},
                              {"ce_time", "2023-11-14T22:13:20.123456Z"},
                              {"content-type", "application/json"},
                              {"ce_partitionkey", "42"},
                              {"ce_correlationid", "c-1"},
                              {"ce_empty", ""}}));
  const auto read = read_message({sent.key, written, sent.payload}, "orders");
  EXPECT_EQ(read.id, sent.id);
  EXPECT_EQ(read.source, sent.source);
  EXPECT_EQ(read.type, sent.type);
  EXPECT_EQ(read.topic, sent.topic);
  EXPECT_EQ(read.key, sent.key);
  EXPECT_EQ(read.content_type, sent.content_type);
  EXPECT_EQ(read.time, sent.time);
  EXPECT_EQ(read.extensions, sent.extensions);
  EXPECT_EQ(read.payload, sent.payload);
}

// Proves O8
TEST(kafka_message, that_is_a_structured_event_is_read) {
  const auto read = read_message({"k",
                                  {{"content-type", "application/cloudevents+json"}},
                                  R"({"specversion":"1.0","id":"e-2","source":"s","type":"t","data":[1]})"},
                                 "orders");
  EXPECT_EQ(read.id, "e-2");
  EXPECT_EQ(read.key, "k") << "the log's, if the event names none";
  EXPECT_EQ(read.topic, "orders");
  EXPECT_EQ(read.payload, "[1]");
}

TEST(kafka_message, of_somebody_who_writes_no_events_has_a_key_a_payload_and_no_id) {
  for (const auto& given : {headers{}, headers{{"trace", "x"}, {"id", "not ours"}},
                            headers{{"content-type", "application/cloudevents+json"}}}) {
    const auto read = read_message({"k", given, "hello"}, "orders");
    EXPECT_EQ(read.id, "");
    EXPECT_EQ(read.key, "k");
    EXPECT_EQ(read.payload, "hello");
    EXPECT_TRUE(read.extensions.empty());
  }
}

TEST(kafka_wire_message, of_others_is_read_by_a_mapping_and_keeps_its_headers_as_extensions) {
  wire_message from{
      .key = "k-1", .headers = {{"Payment-Id", "p-1"}, {"content-type", "text/plain"}}, .value = "{}"};
  const mapper by({.id = {"{header:Payment-Id}"},
                   .source = {"{property:topic}"},
                   .type = {},
                   .key = {},
                   .subject = {"{property:offset}"},
                   .time = {}});
  const auto read =
      read_foreign_message(std::move(from), "payments", {{"topic", "payments.in"}, {"offset", "7"}}, by);
  EXPECT_EQ(read.id, "p-1");
  EXPECT_EQ(read.source, "payments.in");
  EXPECT_EQ(read.subject, "7");
  EXPECT_EQ(read.topic, "payments");
  EXPECT_EQ(read.key, "k-1") << "the key of the record";
  EXPECT_EQ(read.content_type, "text/plain");
  EXPECT_EQ(read.extensions, (attributes{{"paymentid", "p-1"}}));
}

TEST(kafka_wire_message, of_others_that_is_an_event_after_all_keeps_what_it_says) {
  wire_message from{
      .key = {}, .headers = {{"ce_id", "e-1"}, {"ce_type", "paid"}, {"type", "x"}}, .value = "{}"};
  const mapper by({.id = {"{header:type}"},
                   .source = {},
                   .type = {"{header:type}"},
                   .key = {},
                   .subject = {},
                   .time = {}});
  const auto read = read_foreign_message(std::move(from), "payments", {}, by);
  EXPECT_EQ(read.id, "e-1");
  EXPECT_EQ(read.type, "paid");
}

}  // namespace
}  // namespace settle::inline v0::kafka
