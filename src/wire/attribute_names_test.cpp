#include "wire/attribute_names.hpp"

#include <gtest/gtest.h>

#include <array>

namespace settle {
namespace {

constexpr std::array only_cause{attribute_writer::cause};

// Proves O8
TEST(attribute_names, all_that_settle_writes_are_valid_in_cloudevents) {
  for (const auto& one : reserved_attributes()) {
    EXPECT_TRUE(is_attribute_name(one.name)) << one.name;
    EXPECT_LE(one.name.size(), 20u) << one.name << ": CloudEvents says that they should not be longer";
  }
  for (const auto* name : {"webhooksource", "webhookid"}) {  // of settled's own webhooks
    EXPECT_TRUE(is_attribute_name(name));
    EXPECT_EQ(writer_of(name), std::nullopt);
  }
}

TEST(attribute_names, are_lower_case_letters_and_digits) {
  EXPECT_TRUE(is_attribute_name("tenant7"));
  for (const auto* bad : {"", "Tenant", "tenant-id", "tenant_id", "ten ant", "naïve"})
    EXPECT_FALSE(is_attribute_name(bad)) << bad;
}

TEST(attribute_names, know_their_writers) {
  EXPECT_EQ(writer_of("id"), attribute_writer::cloudevents);
  EXPECT_EQ(writer_of("settlereplayfor"), attribute_writer::replay_mark);
  EXPECT_EQ(writer_of("type"), attribute_writer::cloudevents);
  for (const auto* free : {"", "a", "settlement", "idx", "zone"}) EXPECT_EQ(writer_of(free), std::nullopt);
}

TEST(checked_headers, that_are_in_order_stay_as_they_are) {
  const attributes given{{"correlationid", "c"}, {"tenant", "blue"}};
  const auto checked = check_headers(given, only_cause);
  EXPECT_EQ(checked.extensions, given);
  EXPECT_EQ(checked.changes, "");
}

// Proves O8
TEST(checked_headers, have_valid_names_and_none_that_is_reserved) {
  const auto checked =
      check_headers({{"Tenant-Id", "7"}, {"id", "x"}, {"settle-place", "y"}, {"!", "z"}}, only_cause);
  EXPECT_EQ(checked.extensions,
            (attributes{{"tenantid", "7"}, {"headerid", "x"}, {"headersettleplace", "y"}}));
  EXPECT_EQ(checked.changes,
            "'!' left out, 'Tenant-Id' to tenantid, 'id' to headerid, 'settle-place' to headersettleplace");
}

TEST(checked_headers, a_valid_name_goes_before_one_that_becomes_the_same) {
  const auto checked = check_headers({{"TENANT", "1"}, {"Tenant", "2"}, {"tenant", "3"}}, only_cause);
  EXPECT_EQ(checked.extensions, (attributes{{"tenant", "3"}}));
  EXPECT_EQ(checked.changes, "'TENANT' left out, 'Tenant' left out");
}

TEST(checked_headers, control_characters_become_spaces) {
  const auto checked = check_headers({{"note", "a\nb\x7f"}}, only_cause);
  EXPECT_EQ(checked.extensions, (attributes{{"note", "a b "}}));
  EXPECT_EQ(checked.changes, "") << "the name is the same";
}

// Proves O8
TEST(old_attributes, of_dead_letters_get_the_names_of_today) {
  attributes of{{"a", "1"}, {"settle-dlq-failed-at", "2"}, {"settle-dlq-reason", "3"}, {"tenant", "4"}};
  rename_old_attributes(of);
  EXPECT_EQ(of,
            (attributes{{"a", "1"}, {"settledlqfailedat", "2"}, {"settledlqreason", "3"}, {"tenant", "4"}}));
  attributes newer{{"settle-dlq-reason", "old"}, {"settledlqreason", "new"}};
  rename_old_attributes(newer);
  EXPECT_EQ(newer, (attributes{{"settledlqreason", "new"}}));
}

}  // namespace
}  // namespace settle
