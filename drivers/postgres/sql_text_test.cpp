#include "postgres/sql_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace settle::postgres {
namespace {

TEST(sql_text, statements_that_begin_or_end_a_transaction_are_recognised_in_any_dress) {
  for (const auto* sql : {"begin",
                          "BEGIN isolation level serializable",
                          "start transaction",
                          "commit",
                          "Commit Work",
                          "end",
                          "abort",
                          "rollback",
                          "ROLLBACK WORK",
                          "rollback and chain",
                          "commit and chain",
                          "commit prepared 'x'",
                          "rollback prepared 'x'",
                          "prepare transaction 'x'",
                          " \t\r\n\f\vcommit",
                          "-- x\ncommit",
                          "-- x\rcommit",
                          "/* a /* nested */ b */ commit",
                          "; ; commit",
                          ";/**/commit",
                          "/**/;--\ncommit;",
                          "commit/**/",
                          "end;",
                          "rollback -- to a"})
    EXPECT_TRUE(controls_transaction(sql) && concerns_transaction(sql)) << sql;
}

TEST(sql_text, other_statements_are_left_alone) {
  for (const auto* sql : {"",
                          ";",
                          "select 1",
                          "insert into commit values (1)",
                          "\"commit\"",
                          "'commit'",
                          "savepoint a",
                          "release a",
                          "release savepoint a",
                          "rollback to a",
                          "rollback to savepoint a",
                          "rollback work to a",
                          "ROLLBACK /* x */ TRANSACTION to a",
                          "prepare x as select 1",
                          "commits",
                          "begin_x",
                          "end$1",
                          "-- commit",
                          "/* commit",
                          "$$commit$$",
                          "endpoint"})
    EXPECT_FALSE(controls_transaction(sql)) << sql;
}

TEST(sql_text, the_first_word_tells_that_a_statement_does_not_concern_the_transaction) {
  for (const auto* sql : {"", ";", "select 1", "-- commit\ninsert into commit values (1)", "\"commit\"",
                          "commits", "end$1", "$$commit$$", "(set)"})
    EXPECT_FALSE(concerns_transaction(sql)) << sql;
}

TEST(sql_text, only_a_return_to_a_savepoint_means_something_after_a_failure) {
  EXPECT_TRUE(concerns_transaction(" /* x */ rollback to a"));
  EXPECT_TRUE(returns_to_savepoint(" /* x */ rollback to a"));
  EXPECT_TRUE(returns_to_savepoint("rollback transaction to savepoint a"));
  EXPECT_FALSE(returns_to_savepoint("rollback"));
  EXPECT_FALSE(returns_to_savepoint("savepoint a"));
  EXPECT_FALSE(returns_to_savepoint("select 'rollback to a'"));
}

TEST(sql_text, what_a_statement_does_to_which_savepoint) {
  using kind = sql::savepoint_step::kind;
  const auto expect = [](const char* sql, kind what, const char* name) {
    const auto found = savepoint_step_of(sql);
    ASSERT_TRUE(found) << sql;
    EXPECT_EQ(found->what, what) << sql;
    EXPECT_EQ(found->name, name) << sql;
    EXPECT_TRUE(concerns_transaction(sql)) << sql;
  };
  expect("savepoint a", kind::set, "a");
  expect("/* x */ SAVEPOINT /* y */ A -- z", kind::set, "a");
  expect("savepoint \"A b\" ;", kind::set, "A b");
  expect("release a", kind::release, "a");
  expect("release savepoint \"a\"", kind::release, "a");
  expect("rollback to a", kind::roll_back, "a");
  expect("rollback work to savepoint a;", kind::roll_back, "a");
  expect("rollback transaction to \"to\"", kind::roll_back, "to");
  for (const auto* unclear : {"savepoint", "savepoint \"\"", "savepoint \"a\"\"b\"", "savepoint U&\"a\"",
                              "savepoint a; commit", "savepoint 1"})
    expect(unclear, kind::set, "");
  for (const auto* sql : {"select 1", "rollback", "rollback and chain", "\"savepoint\" a", ""})
    EXPECT_FALSE(savepoint_step_of(sql)) << sql;
}

TEST(sql_text, settings_of_the_transaction_are_told_from_others) {
  for (const auto* sql :
       {"set transaction read only", "SET LOCAL transaction read only",
        "set session transaction isolation level serializable", "/**/set transaction_read_only = on",
        "set local transaction_isolation to 'serializable'"})
    EXPECT_TRUE(sets_transaction(sql) && concerns_transaction(sql)) << sql;
  for (const auto* sql :
       {"set constraints all immediate", "set local lock_timeout = 1", "show transaction_isolation",
        "set session characteristics as transaction read only", "set role transaction"})
    EXPECT_FALSE(sets_transaction(sql)) << sql;
}

std::vector<std::string> split(std::string_view sql) {
  std::vector<std::string> found;
  for (const auto one : split_script(sql)) found.emplace_back(one);
  return found;
}
using list = std::vector<std::string>;

TEST(sql_text, a_script_is_split_at_its_semicolons) {
  EXPECT_EQ(split("a;b"), (list{"a", "b"}));
  EXPECT_EQ(split("a;"), (list{"a"}));
  EXPECT_EQ(split(""), list{});
  EXPECT_EQ(split(" ; \n;-- nothing\n;/* here */"), list{});
}

TEST(sql_text, semicolons_inside_literals_comments_and_bodies_do_not_count) {
  for (const std::string one :
       {"select 'a;''b;'", "select e'a\\';b'", "select E'\\\\'", "select \"a;\"\"b\"",
        "select 1 -- a;b\n + 1", "select /* ; /* ; */ ; */ 1", "do $$ begin; end; $$",
        "do $x$ a; $$ b; $y$; $x$", "select $1, 'a;'",
        "create rule r as on insert to t do also (delete from a; delete from b)",
        "create function f() returns int begin atomic select case when true then 1 end; select 2; end",
        "select a$b, 'x;$y' from t$"})
    EXPECT_EQ(split(one + ";select 2"), (list{one, "select 2"})) << one;
}

TEST(sql_text, an_identifier_that_begins_with_e_is_no_escape_string) {
  EXPECT_EQ(split("select name'\\';b"), (list{"select name'\\'", "b"}));
}

TEST(sql_text, what_is_never_closed_ends_with_the_text) {
  for (const auto* sql : {"select 'a;b", "select \"a;", "do $$ a;", "select e'a\\"})
    EXPECT_EQ(split(sql).size(), 1u) << sql;
}

}  // namespace
}  // namespace settle::postgres
