#include "wire/structured_event.hpp"

#include <gtest/gtest.h>

namespace settle {
namespace {

// Proves O8
TEST(structured_event, is_read_with_its_attributes_and_its_data) {
  const auto read = read_structured_event(
      R"({"specversion":"1.0","id":"e-1","source":"shop","type":"order.placed","subject":"order/42",
          "time":"2023-11-14T22:13:20.5Z","partitionkey":"42","datacontenttype":"application/json",
          "correlationid":"c-1","sequence":7,"data":{"total":5}})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, "e-1");
  EXPECT_EQ(read->source, "shop");
  EXPECT_EQ(read->type, "order.placed");
  EXPECT_EQ(read->subject, "order/42");
  EXPECT_EQ(read->time, timestamp(duration(1'700'000'000'500'000)));
  EXPECT_EQ(read->key, "42");
  EXPECT_EQ(read->content_type, "application/json");
  EXPECT_EQ(read->extensions, (attributes{{"correlationid", "c-1"}, {"sequence", "7"}}));
  EXPECT_EQ(read->payload, R"({"total":5})");
}

TEST(structured_event, has_its_data_as_json_unless_its_content_type_says_otherwise) {
  const auto payload = [](const std::string& rest) {
    const auto read = read_structured_event(R"({"specversion":"1.0","id":"e",)" + rest + "}");
    return read ? read->payload : "unreadable";
  };
  EXPECT_EQ(payload(R"("data":"text")"), R"("text")");
  EXPECT_EQ(payload(R"("datacontenttype":"application/order+json; v=1","data":"text")"), R"("text")");
  EXPECT_EQ(payload(R"("data":"text","datacontenttype":"text/plain")"), "text");
  EXPECT_EQ(payload(R"("datacontenttype":"text/xml","data":"<a/>")"), "<a/>");
  EXPECT_EQ(payload(R"("data_base64":"AP8=")"), std::string("\0\xff", 2));
  EXPECT_EQ(payload(R"("data_base64":"no base64")"), "unreadable");
  EXPECT_EQ(payload(R"("subject":null)"), "");
}

TEST(structured_event, is_known_by_its_content_type) {
  EXPECT_TRUE(is_structured_event("application/cloudevents+json"));
  EXPECT_TRUE(is_structured_event("application/cloudevents+json; charset=utf-8"));
  EXPECT_FALSE(is_structured_event("application/cloudevents-batch+json"));
  EXPECT_FALSE(is_structured_event("application/json"));
  EXPECT_FALSE(is_structured_event(""));
}

TEST(structured_event, that_is_no_event_is_not_read) {
  for (const auto* text : {"", "{", "[]", "7", R"({"id":"e-1"})"})
    EXPECT_FALSE(read_structured_event(text)) << text;
}

}  // namespace
}  // namespace settle
