#include "doctor/layout.hpp"

#include <gtest/gtest.h>

namespace settle::doctor {
namespace {

column text(const std::string& name) { return {name, name, "text"}; }
column time_of(const std::string& name) { return {name, name, "timestamp with time zone"}; }
column uuid_of(const std::string& name) { return {name, name, "uuid"}; }
column serial(const std::string& name) {
  column of{name, name, "bigint"};
  of.numbered = true;
  return of;
}

TEST(outbox_layout, goes_by_a_status_column_whatever_its_spelling) {
  for (const auto* name : {"status", "STATE", "processedAt", "is_published", "SENT_AT", "dispatched"})
    EXPECT_EQ(read_layout({serial("id"), text("payload"), text(name)}).kind, layout_kind::status) << name;
  for (const auto* name : {"payload", "statuses", "type", "created_at"})
    EXPECT_EQ(read_layout({serial("id"), text(name)}).kind, layout_kind::cursor) << name;
}

TEST(outbox_layout, knows_that_of_debezium) {
  const std::vector columns{uuid_of("id"), text("aggregatetype"), text("aggregateid"), text("type"),
                            text("payload")};
  EXPECT_EQ(read_layout(columns).kind, layout_kind::debezium);
  auto with_status = columns;
  with_status.push_back(time_of("processed_at"));
  EXPECT_EQ(read_layout(with_status).kind, layout_kind::status);
  auto with_number = columns;
  with_number.push_back(serial("position"));
  EXPECT_EQ(read_layout(with_number).kind, layout_kind::cursor) << "somebody counts: a poller";
}

TEST(outbox_layout, finds_key_number_time_and_id) {
  const auto of =
      read_layout({serial("id"), uuid_of("message_id"), text("partitionKey"), time_of("created_at")});
  EXPECT_EQ(of.number->name, "id");
  EXPECT_EQ(of.event->name, "message_id");
  EXPECT_EQ(of.key->name, "partitionKey");
  EXPECT_EQ(of.time->name, "created_at");
  EXPECT_FALSE(of.transaction);
}

TEST(outbox_layout, takes_a_number_of_the_row_for_no_id_of_the_event) {
  EXPECT_FALSE(read_layout({serial("id"), text("payload")}).event);
  EXPECT_EQ(read_layout({uuid_of("id")}).event->name, "id");
}

TEST(outbox_layout, sees_a_transaction_id_in_its_type_or_its_default) {
  column old_style{"tx", "tx", "bigint"};
  old_style.initial = "txid_current()";
  EXPECT_TRUE(read_layout({serial("id"), {"x", "x", "xid8"}}).transaction);
  EXPECT_TRUE(read_layout({serial("id"), old_style}).transaction);
}

TEST(outbox_layout, says_what_is_pending) {
  EXPECT_EQ(pending_condition(time_of("sent_at")), "sent_at is null");
  EXPECT_EQ(pending_condition({"Done", "\"Done\"", "boolean"}), "not \"Done\"");
  column status = text("status");
  EXPECT_EQ(pending_condition(status), "") << "nobody says with what a row begins";
  status.initial = "'NEW'::text";
  EXPECT_EQ(pending_condition(status), "status = 'NEW'::text");
}

}  // namespace
}  // namespace settle::doctor
