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

}  // namespace
}  // namespace settle::inline v0::kafka
