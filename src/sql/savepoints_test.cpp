#include "sql/savepoints.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace settle::sql {
namespace {

using kind = savepoint_step::kind;
using test::code_of;

std::optional<errc> tried(savepoints& in, kind what, const std::string& name) {
  return code_of([&] { in.apply({what, name}); });
}

TEST(savepoints, are_the_databases_business_in_a_transaction_without_parts) {
  savepoints all;
  EXPECT_EQ(tried(all, kind::roll_back, "unknown"), std::nullopt);
  EXPECT_EQ(tried(all, kind::release, ""), std::nullopt);
}

TEST(savepoints, of_an_earlier_part_are_out_of_reach) {
  savepoints all;
  all.apply({kind::set, "a"});
  all.end_part();
  EXPECT_EQ(tried(all, kind::roll_back, "a"), errc::transaction_control);
  EXPECT_EQ(tried(all, kind::release, "a"), errc::transaction_control);
  all.apply({kind::set, "a"});
  EXPECT_EQ(tried(all, kind::roll_back, "a"), std::nullopt);
  EXPECT_EQ(tried(all, kind::release, "a"), std::nullopt) << "it stays after a rollback to it";
  EXPECT_EQ(tried(all, kind::roll_back, "a"), errc::transaction_control) << "that would be the earlier one";
}

TEST(savepoints, go_with_those_below_them_and_the_newest_of_a_name_first) {
  savepoints all;
  all.end_part();
  for (const auto* name : {"a", "b", "a"}) all.apply({kind::set, name});
  all.apply({kind::release, "a"});
  all.apply({kind::roll_back, "b"});
  all.apply({kind::release, "a"});
  EXPECT_EQ(tried(all, kind::roll_back, "b"), errc::transaction_control);
}

TEST(savepoints, with_a_name_that_cannot_be_told_are_refused) {
  savepoints all;
  all.end_part();
  all.apply({kind::set, ""});
  EXPECT_EQ(tried(all, kind::roll_back, ""), errc::transaction_control);
}

TEST(savepoints, that_were_never_set_do_not_count) {
  savepoints all;
  all.end_part();
  all.apply({kind::set, "a"});
  all.confirm();
  all.apply({kind::set, "b"});
  all.forget_unconfirmed();
  EXPECT_EQ(tried(all, kind::roll_back, "b"), errc::transaction_control);
  EXPECT_EQ(tried(all, kind::release, "a"), std::nullopt);
  all.forget_unconfirmed();
  EXPECT_EQ(tried(all, kind::roll_back, "a"), errc::transaction_control);
}

TEST(savepoints, begin_anew_with_the_transaction) {
  savepoints all;
  all.end_part();
  all.clear();
  EXPECT_EQ(tried(all, kind::roll_back, "a"), std::nullopt);
}

}  // namespace
}  // namespace settle::sql
