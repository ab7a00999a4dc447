#include <gtest/gtest.h>

#include "settle/driver/broker.hpp"

namespace settle {
namespace {

using pairs = std::vector<std::pair<std::string, std::string>>;

// Proves O8
TEST(cloudevents, attributes_have_their_names_and_a_fixed_order) {
  message m;
  m.id = "018bcfe5-6800-7abc-8def-0001020304ff";
  m.source = "settle:abc";
  m.type = "order.placed";
  m.topic = "orders";
  m.key = "42";
  m.subject = "order/42";
  m.content_type = "application/json";
  m.time = timestamp(duration(1'700'000'000'123'456));
  m.extensions = {{"sequence", "7"}, {"correlationid", "c"}};
  m.payload = "{}";
  EXPECT_EQ(cloudevents_attributes(m), (pairs{{"specversion", "1.0"},
                                              {"id", "018bcfe5-6800-7abc-8def-0001020304ff"},
                                              {"source", "settle:abc"},
                                              {"type", "order.placed"},
                                              {"subject", "order/42"},
                                              {"time", "2023-11-14T22:13:20.123456Z"},
                                              {"datacontenttype", "application/json"},
                                              {"partitionkey", "42"},
                                              {"correlationid", "c"},
                                              {"sequence", "7"}}));
}

// Proves O8
TEST(cloudevents, optional_attributes_that_are_empty_are_left_out_and_required_ones_are_not) {
  message m;
  m.id = "1";
  m.source = "s";
  m.type = "t";
  EXPECT_EQ(cloudevents_attributes(m), (pairs{{"specversion", "1.0"},
                                              {"id", "1"},
                                              {"source", "s"},
                                              {"type", "t"},
                                              {"time", "1970-01-01T00:00:00.000000Z"}}));
}

// Proves O8
TEST(cloudevents, extensions_neither_replace_the_messages_own_attributes_nor_have_names_that_clients_refuse) {
  message m;
  m.id = "1";
  m.source = "s";
  m.type = "t";
  m.extensions = {
      {"id", "x"}, {"data", "x"}, {"Tenant-Id", "7"}, {"settle-dlq-reason", "r"}, {"sequence", "9"}};
  const auto all = cloudevents_attributes(m);
  const pairs extensions(all.begin() + 5, all.end());
  EXPECT_EQ(extensions, (pairs{{"headerdata", "x"},
                               {"headerid", "x"},
                               {"sequence", "9"},
                               {"settledlqreason", "r"},
                               {"tenantid", "7"}}));
}

}  // namespace
}  // namespace settle
