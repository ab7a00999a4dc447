#include "wire/mapping.hpp"

#include <gtest/gtest.h>

#include "base/time_text.hpp"
#include "settle/error.hpp"

namespace settle {
namespace {

struct message_mapped : ::testing::Test {
  message mapped(const message_mapping& by) {
    mapper(by).fill(content, {properties, headers});
    return content;
  }
  std::string id(std::vector<std::string> templates) { return mapped({.id = std::move(templates)}).id; }

  message content{
      .id = "",
      .source = "",
      .type = "",
      .topic = "payments",
      .key = "",
      .subject = "",
      .content_type = "",
      .time = {},
      .extensions = {},
      .payload = R"({"order": {"id": 42, "tags": ["a/b"], "paid": true, "note": ""}, "x/y": "z"})"};
  named_texts properties{{"message-id", "m-1"}, {"routing-key", "payment.created"}};
  named_texts headers{{"event", "created"}};
};

// Proves C2
TEST_F(message_mapped, takes_attributes_from_properties_headers_and_the_payload) {
  const auto m = mapped({.id = {"{property:message-id}"},
                         .source = {"bank"},
                         .type = {"payment.{header:event}"},
                         .key = {"{payload:/order/id}"},
                         .subject = {"{payload:/order/tags/0}"},
                         .time = {}});
  EXPECT_EQ(m.id, "m-1");
  EXPECT_EQ(m.source, "bank");
  EXPECT_EQ(m.type, "payment.created");
  EXPECT_EQ(m.key, "42");
  EXPECT_EQ(m.subject, "a/b");
}

// Proves C2
TEST_F(message_mapped, takes_the_first_template_whose_parts_are_all_there) {
  properties.clear();
  EXPECT_EQ(id({"{property:message-id}", "{payload:/order/id}-{header:missing}",
                "{payload:/order/id}-{header:event}"}),
            "42-created");
}

TEST_F(message_mapped, keeps_what_the_message_says_itself) {
  content.id = "its own";
  EXPECT_EQ(id({"{property:message-id}"}), "its own");
}

TEST_F(message_mapped, has_no_id_if_no_template_fits) {
  EXPECT_EQ(id({"{header:absent}"}), "");
  EXPECT_EQ(id({"{payload:/order}"}), "") << "an object is no id";
  EXPECT_EQ(id({"{payload:/order/note}"}), "") << "empty text is none either";
  content.payload = "no JSON";
  EXPECT_EQ(id({"{payload:/order/id}"}), "");
}

TEST_F(message_mapped, reads_pointers_as_rfc_6901_writes_them) {
  EXPECT_EQ(id({"{payload:/x~1y}{payload:/order/paid}"}), "ztrue");
}

TEST_F(message_mapped, reads_times_as_text_seconds_and_milliseconds) {
  for (const auto* text : {"2026-01-31T12:00:00Z", "1769860800", "1769860800000"}) {
    headers = {{"at", text}};
    content.time = {};
    EXPECT_EQ(to_rfc3339(mapped({.time = {"{header:at}"}}).time), "2026-01-31T12:00:00.000000Z") << text;
  }
  headers = {{"at", "yesterday"}};
  content.time = {};
  EXPECT_EQ(mapped({.time = {"{header:at}"}}).time, timestamp{});
}

TEST_F(message_mapped, refuses_templates_that_cannot_be_read) {
  for (const auto* bad : {"{header:event", "{heder:event}", "{header:}", "{payload:order}", "{event}"})
    EXPECT_THROW(mapper({.id = {bad}}), error) << bad;
}

}  // namespace
}  // namespace settle
