#include "sql/own_table.hpp"

#include <gtest/gtest.h>

#include <array>

#include "support/expect_error.hpp"

namespace settle::sql {
namespace {

// Proves G1, G5
TEST(own_table, names_cannot_leave_their_quotes) {
  EXPECT_EQ(quoted_name(R"(a"; drop table x; --)"), R"("a""; drop table x; --")");
  EXPECT_EQ(checked_table("orders", "table"), R"("orders")");
  EXPECT_EQ(checked_table("shop.Order Lines", "table"), R"("shop"."Order Lines")");
  EXPECT_EQ(checked_table(R"(s".a.b)", "table"), R"("s"""."a.b")");
}

TEST(own_table, what_cannot_be_a_name_is_refused) {
  const std::string with_nul("a\0b", 3);
  for (const auto& name :
       {std::string(), std::string(64, 'x'), with_nul, std::string("a\nb"), std::string("\xff")}) {
    EXPECT_EQ(test::code_of([&] { check_identifier(name, "column"); }), errc::invalid_name) << name;
    EXPECT_EQ(test::code_of([&] { checked_table(name, "table"); }), errc::invalid_name) << name;
    EXPECT_EQ(test::code_of([&] { checked_table("s." + name, "table"); }), errc::invalid_name) << name;
  }
  EXPECT_EQ(test::code_of([&] { checked_table(".t", "table"); }), errc::invalid_name);
  EXPECT_EQ(test::code_of([&] { checked_table("t.", "table"); }), errc::invalid_name);
  EXPECT_EQ(test::code_of([&] { check_identifier(std::string(63, 'x'), "column"); }), std::nullopt);
}

TEST(own_table, a_query_is_filled_in_for_both_databases_and_named_after_what_it_is_filled_with) {
  const query text{"q", "select {key} from {table} where {key} = $1", "select {key}"};
  const std::array<blank, 2> with{{{"table", R"("t{key}")"}, {"key", R"("k")"}}};
  const filled_query done(text, with);
  EXPECT_EQ(done.get().sqlite, R"(select "k" from "t{key}" where "k" = $1)");
  EXPECT_EQ(done.get().postgres, R"(select "k")");
  const std::array<blank, 2> other{{{"table", R"("u")"}, {"key", R"("k")"}}};
  EXPECT_NE(done.get().name, filled_query(text, other).get().name);
  EXPECT_EQ(done.get().name.substr(0, 32), "q" + std::string(31, '_'));
}

TEST(own_table, keys_are_integers_or_texts) {
  EXPECT_EQ(key_text(17, "key"), "17");
  EXPECT_EQ(key_text("17a", "key"), "17a");
  for (const auto& wrong : {value(), value(1.5), value(blob{"x"})})
    EXPECT_EQ(test::code_of([&] { key_text(wrong, "key"); }), errc::invalid_argument);
  EXPECT_EQ(test::code_of([&] { key_text("", "key"); }), errc::invalid_name);
}

}  // namespace
}  // namespace settle::sql
