// Columns of a user's own tables: what a value of each type is read as, and what is said of the others.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "settle/error.hpp"
#include "settle/postgres.hpp"
#include "support/postgres_fixture.hpp"

namespace settle::test {
namespace {

class postgres_types : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = postgres_missing(); !why.empty()) GTEST_SKIP() << why;
    server_.emplace();
    db_ = postgres::open(server_->conninfo());
  }

  value one(const std::string& expression) { return db_->read().execute("select " + expression).take(0, 0); }

  std::string refusal_of(const std::string& sql) {
    try {
      db_->read().execute(sql);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::statement_failed) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "nothing was refused: " << sql;
    return {};
  }

  std::optional<scratch_database> server_;
  std::unique_ptr<database> db_;
};

TEST_F(postgres_types, numeric_is_an_integer_where_it_is_whole_and_keeps_all_its_digits) {
  EXPECT_EQ(one("sum(n::bigint) from generate_series(1, 4) as n").integer(), 10);
  EXPECT_EQ(one("12.00::numeric(10, 2)").integer(), 12);
  EXPECT_EQ(one("12.50::numeric(10, 2)").text(), "12.50");
  EXPECT_EQ(one("12.50::numeric(10, 2)").real(), 12.5);
  EXPECT_EQ(one("123456789012345678901234567890::numeric").text(), "123456789012345678901234567890");
  EXPECT_EQ(one("round(12.5)::bigint").integer(), 13);
}

TEST_F(postgres_types, numeric_goes_back_as_it_came) {
  auto tx = db_->begin();
  tx.execute("create table prices (price numeric)");
  const auto price = tx.execute("select 0.10::numeric").take(0, 0);
  tx.execute("insert into prices (price) values ($1)", {price});
  tx.execute("insert into prices (price) values ($1)", {decimal{"12345678901234567890.123"}});
  const auto found = tx.execute("select price from prices order by price");
  EXPECT_EQ(found[0][0].text(), "0.10");
  EXPECT_EQ(found[1][0].text(), "12345678901234567890.123");
}

TEST_F(postgres_types, dates_times_and_intervals_are_the_text_that_a_cast_makes_of_them) {
  for (const auto* expression :
       {"date '2026-11-18'", "date '0044-03-15 BC'", "date 'infinity'", "date '-infinity'",
        "date '2000-02-29'", "date '5874897-12-31'", "date '4713-01-01 BC'", "time '13:05:09.12'",
        "time '24:00'", "timetz '13:05:09+05:30'", "timetz '00:00:00.000001-08'",
        "interval '1 year 2 months 3 days 04:05:06.7'", "interval '-1 day 2 hours'", "interval '0'",
        "interval '1 month -3 days'", "interval '-1 month'", "interval '-90 seconds'",
        "interval '1000 hours'", "interval '1 mon -1 day -00:00:00.5'"}) {
    const auto found =
        db_->read().execute(std::string("select v, v::text from (select ") + expression + ") as t(v)");
    EXPECT_EQ(found[0][0].text(), found[0][1].text()) << expression;
  }
}

TEST_F(postgres_types, others_are_what_one_expects) {
  EXPECT_TRUE(one("true").boolean());
  EXPECT_FALSE(one("false").boolean());
  EXPECT_EQ(one("1.5::real").real(), 1.5);
  EXPECT_EQ(one("'1970-01-01 00:00:01+00'::timestamptz").time(), timestamp(std::chrono::seconds(1)));
  EXPECT_EQ(one("'0190163d-8694-739b-aea5-966c26f8ad91'::uuid").text(),
            "0190163d-8694-739b-aea5-966c26f8ad91");
  EXPECT_EQ(one("'[1, 2]'::jsonb").text(), "[1, 2]");
  EXPECT_EQ(one("to_json(array[1, 2])").text(), "[1,2]");
}

TEST_F(postgres_types, that_have_no_value_are_refused_with_the_cast_that_helps) {
  server_->run("create type mood as enum ('good', 'bad')");
  server_->run("create table people (name text, feels mood, tags text[], home inet)");
  const auto says = [](const std::string& told, std::string_view part) {
    EXPECT_NE(told.find(part), std::string::npos) << told;
  };
  says(refusal_of("select name, feels from people"),
       "'feels' is of a type of your own (an enum perhaps; oid");
  says(refusal_of("select name, feels from people"), "select it as cast(feels as text)");
  says(refusal_of("select tags from people"), "'tags' is text[], which has no value here");
  says(refusal_of("select tags from people"), "cast(tags as text) or to_json(tags)");
  says(refusal_of("select home from people"), "'home' is inet");
  server_->run("insert into people values ('ann', 'good', '{a,b}', '::1')");
  const auto found = db_->read().execute("select cast(feels as text), to_json(tags), home::text from people");
  EXPECT_EQ(found[0][0].text(), "good");
  EXPECT_EQ(found[0][1].text(), "[\"a\",\"b\"]");
  EXPECT_EQ(found[0][2].text(), "::1/128");
}

// The commit has happened; whoever reads the column is told.
TEST_F(postgres_types, that_have_no_value_do_not_make_a_commit_look_as_if_it_had_failed) {
  server_->run("create table people (name text, tags text[])");
  constexpr std::string_view sql = "insert into people values ($1, '{a}') returning name, tags";
  const query insert{"types.insert_person", sql, sql};
  for (const bool alone : {true, false}) {
    auto tx = db_->begin();
    if (!alone) tx.execute("select 1");
    std::optional<result> done;
    ASSERT_NO_THROW(done = tx.commit_with(statement{insert, {"ann"}}));
    EXPECT_EQ(done->size(), 1U);
    EXPECT_EQ(done->cell(0, 0).text(), "ann");
    EXPECT_THROW((void)done->cell(0, 1), error);
  }
  EXPECT_EQ(db_->read().execute("select count(*) from people")[0][0].integer(), 2);
}

}  // namespace
}  // namespace settle::test
