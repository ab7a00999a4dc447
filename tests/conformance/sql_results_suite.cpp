// What comes back: numbers as they are, and errors for what is not there.
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/sql_suite.hpp"
#include "settle/error.hpp"
#include "settle/failure.hpp"

namespace settle::test {
namespace {

constexpr query find_note{"conformance.find_note", "select note from notes where id = $1",
                          "select note from notes where id = $1"};

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unexpected_result) << e.what();
    EXPECT_EQ(class_of(e), failure_class::poison) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

void says(const std::string& told, std::string_view part) {
  EXPECT_NE(told.find(part), std::string::npos) << told;
}

TEST_P(sql_conformance, unsigned_integers_come_back_as_they_went_in) {
  auto db = open();
  auto tx = db->begin();
  tx.execute("create table cells (number bigint, words text)");
  const std::uint64_t beyond_double = 9'007'199'254'740'993;
  tx.execute("insert into cells (number, words) values ($1, $2)",
             {beyond_double, std::vector<int>{1, 2, 3}.size()});
  const auto found = tx.execute("select number, words from cells");
  EXPECT_EQ(found[0][0].integer(), 9'007'199'254'740'993);
  EXPECT_EQ(found[0][1].text(), "3");
}

TEST_P(sql_conformance, sums_and_averages_are_numbers) {
  auto db = open();
  auto tx = db->begin();
  tx.execute("create table cells (number bigint)");
  EXPECT_TRUE(tx.execute("select sum(number) from cells")[0][0].is_null());
  for (const auto number : {1'000'000'000'000, 3'000'000'000'001})
    tx.execute("insert into cells (number) values ($1)", {number});
  const auto found = tx.execute("select sum(number), avg(number), count(*), max(number) from cells");
  EXPECT_EQ(found[0][0].integer(), 4'000'000'000'001);
  EXPECT_EQ(found[0][1].real(), 2'000'000'000'000.5);
  EXPECT_EQ(found[0][2].integer(), 2);
  EXPECT_EQ(found[0][3].integer(), 3'000'000'000'001);
}

TEST_P(sql_conformance, a_row_that_is_not_there_is_an_error_that_names_the_statement) {
  auto db = open_with_notes();
  add_note(*db, 1);
  auto tx = db->begin();
  const auto none = tx.execute("select note\n  from notes\n  where id = $1", {17});
  says(refusal_of([&] { (void)none[0]; }),
       "'select note from notes where id = $1' returned no row, and row 0");
  says(refusal_of([&] { (void)none.cell(0, 0); }), "returned no row");
  says(refusal_of([&] { (void)tx.execute(find_note, {17})[0][0].text(); }),
       "'conformance.find_note' returned");
  const auto one = tx.execute("select note from notes");
  says(refusal_of([&] { (void)one[1]; }), "'select note from notes' returned 1 row, and row 1 was asked for");
  const auto written = tx.execute("insert into notes (id, note) values (2, 'x')");
  says(refusal_of([&] { (void)written[0]; }),
       "'insert into notes (id, note) values (2, 'x')' returns no rows");
  EXPECT_EQ(tx.execute("select count(*) from notes")[0][0].integer(), 2) << "the transaction goes on";
}

TEST_P(sql_conformance, a_row_of_statements_that_were_run_together_is_named_likewise) {
  auto db = open_with_notes();
  const std::vector<parameters> keys = {{1}, {2}};
  const repeated both{find_note, keys};
  auto tx = db->begin();
  const auto found = tx.execute_all({&both, 1});
  ASSERT_EQ(found.size(), 2U);
  for (const auto& one : found)
    says(refusal_of([&] { (void)one[0]; }), "'conformance.find_note' returned no row");
  const auto last = tx.commit_with(statement{find_note, {1}});
  says(refusal_of([&] { (void)last[0]; }), "'conformance.find_note' returned no row");
  const auto alone = db->read().commit_with(statement{find_note, {1}}, "");
  says(refusal_of([&] { (void)alone[0]; }), "'conformance.find_note' returned no row");
}

TEST_P(sql_conformance, a_column_that_is_not_there_is_an_error_that_names_the_statement) {
  auto db = open_with_notes();
  add_note(*db, 1);
  auto found = db->read().execute("select id, note from notes");
  const auto row = found[0];
  const auto kept = std::move(found);
  says(refusal_of([&] { (void)row[2]; }), "'select id, note from notes' returns 2 columns, and column 2");
  says(refusal_of([&] { (void)kept.cell(0, 2); }), "returns 2 columns");
  EXPECT_EQ(row[0].integer(), 1);
}

TEST_P(sql_conformance, a_long_statement_is_named_by_its_beginning) {
  auto db = open_with_notes();
  const std::string sql = "select note from notes where note in ('" + std::string(300, 'x') + "')";
  const auto told = refusal_of([&] { (void)db->read().execute(sql)[0]; });
  says(told, "'select note from notes where note in ('xxx");
  says(told, "xxx…' returned no row");
  EXPECT_LT(told.size(), 300U);
}

}  // namespace
}  // namespace settle::test
