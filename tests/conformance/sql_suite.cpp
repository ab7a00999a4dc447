// Values, statements and transactions.
#include "conformance/sql_suite.hpp"

#include <array>
#include <functional>
#include <limits>
#include <vector>

#include "settle/driver/database.hpp"
#include "settle/error.hpp"

namespace settle::test {
namespace {

using namespace std::string_literals;

constexpr query insert_note{"conformance.insert_note", "insert into notes (id, note) values ($1, $2)",
                            "insert into notes (id, note) values ($1, $2)"};
constexpr query insert_or_skip_note{"conformance.insert_or_skip_note",
                                    "insert into notes (id, note) values ($1, $2) on conflict do nothing",
                                    "insert into notes (id, note) values ($1, $2) on conflict do nothing"};
constexpr query update_note{"conformance.update_note", "update notes set note = $2 where id >= $1",
                            "update notes set note = $2 where id >= $1"};
constexpr query select_notes{"conformance.select_notes", "select id, note from notes",
                             "select id, note from notes"};

// Writes one value into a column of the type, commits, and reads it in another transaction.
value round_trip(database& db, const std::string& column_type, const value& what) {
  {
    auto tx = db.begin();
    tx.execute("create table cells (cell " + column_type + ")");
    tx.execute("insert into cells (cell) values ($1)", {what});
    tx.commit();
  }
  auto back = db.read().execute("select cell from cells").take(0, 0);
  auto tx = db.begin();
  tx.execute("drop table cells");
  tx.commit();
  return back;
}

TEST_P(sql_conformance, integers_come_back_as_they_went_in) {
  auto db = open();
  using limits = std::numeric_limits<std::int64_t>;
  for (const std::int64_t number : {std::int64_t{0}, std::int64_t{-1}, limits::min(), limits::max()})
    EXPECT_EQ(round_trip(*db, "bigint", number).integer(), number);
}

TEST_P(sql_conformance, reals_come_back_as_they_went_in) {
  auto db = open();
  using limits = std::numeric_limits<double>;
  for (const double number : {0.1, -1.5, limits::max(), limits::lowest(), limits::min()})
    EXPECT_EQ(round_trip(*db, "double precision", number).real(), number);
}

TEST_P(sql_conformance, text_comes_back_as_it_went_in) {
  auto db = open();
  for (const auto& text :
       {""s, "plain"s, "it's \"quoted\" $1 ; --"s, "Zürich 東京 \xf0\x9f\x9a\x80"s, "line\nand\ttab"s})
    EXPECT_EQ(round_trip(*db, "text", text).text(), text);
}

TEST_P(sql_conformance, text_with_a_nul_inside_is_kept_whole_or_refused) {
  auto db = open();
  const auto text = "before\0after"s;
  if (GetParam().text_holds_nul)
    EXPECT_EQ(round_trip(*db, "text", text).text(), text);
  else
    EXPECT_EQ(code_of([&] { round_trip(*db, "text", text); }), errc::invalid_argument);
}

TEST_P(sql_conformance, bytes_come_back_as_they_went_in) {
  auto db = open();
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const auto& bytes : {""s, "\0"s, all, std::string(100'000, '\xff')})
    EXPECT_EQ(round_trip(*db, GetParam().bytes_type, blob{bytes}).bytes(), bytes);
}

TEST_P(sql_conformance, empty_values_are_not_null) {
  auto db = open();
  EXPECT_FALSE(round_trip(*db, "text", "").is_null());
  EXPECT_FALSE(round_trip(*db, GetParam().bytes_type, blob{}).is_null());
}

TEST_P(sql_conformance, null_comes_back_as_null_from_every_type) {
  auto db = open();
  for (const auto& type : {"bigint"s, "double precision"s, "text"s, GetParam().bytes_type})
    EXPECT_TRUE(round_trip(*db, type, nullptr).is_null()) << type;
}

TEST_P(sql_conformance, times_and_ids_come_back_as_they_went_in) {
  auto db = open();
  const timestamp at{duration(1'700'000'000'123'456)};
  EXPECT_EQ(round_trip(*db, "bigint", at).time(), at);
  const auto id = system_ids().next_as<event_id>();
  EXPECT_EQ(event_id::parse(round_trip(*db, "text", id).text()), id);
}

TEST_P(sql_conformance, parameters_are_numbered_not_counted) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.execute("insert into notes (note, id) values ($2, $1)", {7, "seven"});
  tx.execute("insert into notes (note, id) values ($1, $2)", {"eight", 8});
  EXPECT_EQ(tx.execute("select note from notes where id = $1", {7})[0][0].text(), "seven");
  EXPECT_EQ(tx.execute("select note from notes where id = $1", {8})[0][0].text(), "eight");
}

TEST_P(sql_conformance, a_parameter_may_be_used_several_times) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.execute("insert into notes (id, note) values ($2, $1), ($2 + 1, $1), ($2 + 2, 'other')", {"same", 40});
  const auto found = tx.execute(
      "select id from notes where note = $2 and id >= $1 and id <= $1 + 9 order by id", {40, "same"});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0][0].integer(), 40);
  EXPECT_EQ(found[1][0].integer(), 41);
}

TEST_P(sql_conformance, more_than_nine_parameters_keep_their_numbers) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.execute(
      "insert into notes (id, note) values ($11, $1), ($10, $2), ($9, $3), ($8, $4), ($7, $5), ($6, 'f')",
      {"a", "b", "c", "d", "e", 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(tx.execute("select note from notes where id = 11")[0][0].text(), "a");
  EXPECT_EQ(tx.execute("select note from notes where id = 10")[0][0].text(), "b");
  EXPECT_EQ(tx.execute("select note from notes where id = 7")[0][0].text(), "e");
}

TEST_P(sql_conformance, a_wrong_number_of_values_is_refused) {
  auto db = open_with_notes();
  const auto insert_with = [&](std::initializer_list<value> values) {
    return code_of([&] { db->begin().execute("insert into notes (id, note) values ($1, $2)", values); });
  };
  EXPECT_EQ(insert_with({1}), errc::statement_failed);
  EXPECT_EQ(insert_with({1, "x", 3}), errc::statement_failed);
  EXPECT_EQ(insert_with({}), errc::statement_failed);
}

TEST_P(sql_conformance, several_statements_in_one_are_refused_and_none_of_them_runs) {
  auto db = open_with_notes();
  auto tx = db->begin();
  const auto both =
      "insert into notes (id, note) values (1, 'a'); insert into notes (id, note) values (2, 'b')";
  EXPECT_EQ(code_of([&] { tx.execute(both); }), errc::statement_failed);
  if (!GetParam().continues_after_failure) return;
  EXPECT_EQ(tx.execute("select count(*) from notes")[0][0].integer(), 0);
}

TEST_P(sql_conformance, a_statement_that_the_database_does_not_accept_is_named_in_the_error) {
  auto db = open_with_notes();
  for (const std::string sql :
       {"selct 1", "select missing_column from notes", "select * from missing_table", ""}) {
    auto tx = db->begin();
    try {
      tx.execute(sql);
      ADD_FAILURE() << "accepted: " << sql;
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::statement_failed) << sql;
      EXPECT_FALSE(e.retryable()) << sql;
      EXPECT_FALSE(e.outcome_unknown()) << sql;
      EXPECT_NE(std::string(e.what()).find(sql), std::string::npos) << e.what();
    }
  }
}

TEST_P(sql_conformance, statements_report_how_many_rows_they_changed) {
  auto db = open_with_notes();
  auto tx = db->begin();
  const std::vector<parameters> rows{{1, "a"}, {2, "b"}, {3, "c"}};
  tx.execute_many(insert_note, rows);
  EXPECT_EQ(tx.execute("update notes set note = 'z' where id > 1").affected(), 2);
  EXPECT_EQ(tx.execute("update notes set note = 'z' where id > 99").affected(), 0);
  EXPECT_EQ(tx.execute("select id from notes").affected(), 0);
  EXPECT_EQ(tx.execute("delete from notes").affected(), 3);
}

TEST_P(sql_conformance, a_statement_that_changes_no_rows_does_not_report_those_of_the_one_before) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.execute("insert into notes (id, note) values (1, 'a'), (2, 'b')");
  EXPECT_EQ(tx.execute("create table other (id bigint)").affected(), 0);
}

TEST_P(sql_conformance, a_writing_statement_can_return_rows) {
  auto db = open_with_notes();
  auto tx = db->begin();
  const auto made = tx.execute("insert into notes (id, note) values (1, 'a'), (2, 'b') returning id, note");
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[1][1].text(), "b");
  EXPECT_EQ(made.affected(), 2);
}

TEST_P(sql_conformance, execute_many_counts_each_row_and_shows_which_were_skipped) {
  auto db = open_with_notes();
  add_note(*db, 2, "first");
  auto tx = db->begin();
  const std::vector<parameters> rows{{1, "a"}, {2, "b"}, {3, "c"}, {3, "again"}};
  EXPECT_EQ(tx.execute_many(insert_or_skip_note, rows), (std::vector<std::int64_t>{1, 0, 1, 0}));
  EXPECT_EQ(tx.execute("select note from notes where id = 2")[0][0].text(), "first");
  EXPECT_EQ(tx.execute("select note from notes where id = 3")[0][0].text(), "c");
}

TEST_P(sql_conformance, execute_many_counts_rows_changed_by_each) {
  auto db = open_with_notes();
  auto tx = db->begin();
  const std::vector<parameters> notes{{1, "a"}, {2, "b"}, {3, "c"}};
  tx.execute_many(insert_note, notes);
  const std::vector<parameters> updates{{1, "x"}, {3, "y"}, {9, "z"}};
  EXPECT_EQ(tx.execute_many(update_note, updates), (std::vector<std::int64_t>{3, 1, 0}));
}

TEST_P(sql_conformance, execute_many_of_nothing_does_nothing) {
  auto db = open_with_notes();
  auto tx = db->begin();
  EXPECT_TRUE(tx.execute_many(insert_note, {}).empty());
}

TEST_P(sql_conformance, execute_many_fails_as_a_whole_if_a_row_fails) {
  auto db = open_with_notes();
  {
    auto tx = db->begin();
    const std::vector<parameters> rows{{1, "a"}, {1, "again"}, {2, "b"}};
    EXPECT_EQ(code_of([&] { tx.execute_many(insert_note, rows); }), errc::constraint_violated);
  }
  EXPECT_EQ(count_notes(*db), 0);
}

TEST_P(sql_conformance, statements_of_one_exchange_answer_in_their_order) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.post(insert_note, {0, "posted"});
  std::vector<parameters> notes;
  for (int i = 1; i <= 600; ++i) notes.push_back({i % 500, "n"});  // more than go in one message, some twice
  const std::vector<parameters> none{{}};
  const std::array<repeated, 3> all{
      {{select_notes, none}, {insert_or_skip_note, notes}, {select_notes, none}}};
  const auto found = tx.execute_all(all);
  ASSERT_EQ(found.size(), notes.size() + 2);
  EXPECT_EQ(found.front().size(), 1u) << "what was posted before is there";
  EXPECT_EQ(found[1].affected(), 1);
  EXPECT_EQ(found[500].affected(), 0) << "number 0 was posted";
  EXPECT_EQ(found[501].affected(), 0) << "number 1 again";
  EXPECT_EQ(found.back().size(), 500u);
}

TEST_P(sql_conformance, an_exchange_fails_as_a_whole_if_a_statement_fails) {
  auto db = open_with_notes();
  const std::vector<parameters> twice{{1, "a"}, {1, "again"}};
  const std::vector<parameters> none{{}};
  const std::array<repeated, 2> all{{{insert_note, twice}, {select_notes, none}}};
  EXPECT_EQ(code_of([&] { db->begin().execute_all(all); }), errc::constraint_violated);
  EXPECT_EQ(code_of([&] { db->begin().commit_with(all); }), errc::constraint_violated);
  EXPECT_EQ(count_notes(*db), 0);
}

TEST_P(sql_conformance, a_last_statement_commits_alone_or_with_what_was_before_it) {
  auto db = open_with_notes();
  EXPECT_EQ(db->begin().commit_with({insert_note, {1, "alone"}}).affected(), 1);
  {
    auto tx = db->begin();
    tx.execute(insert_note, {2, "before"});
    tx.post(insert_note, {3, "posted"});
    EXPECT_EQ(tx.commit_with({update_note, {2, "changed"}}).affected(), 2);
  }
  EXPECT_EQ(db->read().commit_with({select_notes, {}}, "").size(), 3u);
  EXPECT_EQ(count_notes(*db), 3);
}

TEST_P(sql_conformance, several_last_statements_commit_in_order_with_a_result_for_each_row) {
  auto db = open_with_notes();
  const std::vector<parameters> none{{}};
  for (const std::int64_t count : {2, 500}) {
    std::vector<parameters> notes;
    for (std::int64_t n = 0; n < count; ++n) notes.push_back({n, "a"});
    const std::array<repeated, 3> all{
        {{insert_or_skip_note, notes}, {update_note, {}}, {select_notes, none}}};
    auto tx = db->begin();
    tx.post(insert_or_skip_note, {1, "posted"});
    const auto found = tx.commit_with(all);
    ASSERT_EQ(found.size(), notes.size() + 1);
    EXPECT_EQ(found[1].affected(), 0) << "what was posted is there";
    EXPECT_EQ(found.back().size(), notes.size());
    EXPECT_EQ(code_of([&] { tx.execute(select_notes); }), errc::transaction_lost) << "it is over";
    EXPECT_EQ(count_notes(*db), count);
  }
  EXPECT_TRUE(db->begin().commit_with(std::span<const repeated>()).empty());
}

TEST_P(sql_conformance, a_last_statement_that_fails_takes_everything_with_it) {
  auto db = open_with_notes();
  add_note(*db, 1, "there");
  EXPECT_EQ(code_of([&] { db->begin().commit_with({insert_note, {1, "alone"}}); }),
            errc::constraint_violated);
  {
    auto tx = db->begin();
    tx.execute(insert_note, {2, "before"});
    EXPECT_EQ(code_of([&] { tx.commit_with({insert_note, {1, "last"}}); }), errc::constraint_violated);
    EXPECT_EQ(code_of([&] { tx.execute(select_notes); }), errc::transaction_lost) << "it is over";
  }
  EXPECT_EQ(count_notes(*db), 1);
}

TEST_P(sql_conformance, a_posted_statement_runs_in_order_before_what_follows_it) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.post(insert_note, {1, "a"});
  tx.post({insert_note, {2, "b"}});
  tx.post(update_note, {2, "changed"});
  const auto found = tx.execute("select note from notes order by id");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0][0].text(), "a");
  EXPECT_EQ(found[1][0].text(), "changed");
}

TEST_P(sql_conformance, posted_statements_commit_or_roll_back_with_the_transaction) {
  auto db = open_with_notes();
  {
    auto tx = db->begin();
    tx.post(insert_note, {1, "kept"});
    tx.commit();
  }
  {
    auto tx = db->begin();
    tx.post(insert_note, {2, "gone"});
    tx.rollback();
  }
  EXPECT_EQ(count_notes(*db), 1);
}

TEST_P(sql_conformance, a_posted_statement_that_fails_is_named_at_the_latest_by_the_commit) {
  auto db = open_with_notes();
  add_note(*db, 1);
  for (const bool with_another_statement : {false, true}) {
    auto tx = db->begin();
    std::string said;
    try {
      tx.execute("insert into notes (id, note) values (7, 'not without the other')");
      tx.post(insert_note, {1, "again"});
      if (with_another_statement) tx.execute("select 1");
      tx.commit();
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::constraint_violated);
      EXPECT_FALSE(e.outcome_unknown());
      said = e.what();
    }
    EXPECT_NE(said.find(insert_note.sqlite), std::string::npos) << said;
  }
  EXPECT_EQ(count_notes(*db), 1);
}

TEST_P(sql_conformance, any_number_of_statements_can_be_posted) {
  auto db = open_with_notes();
  auto tx = db->begin();
  for (int i = 0; i < 1000; ++i) tx.post(insert_note, {i, "x"});
  tx.commit();
  EXPECT_EQ(count_notes(*db), 1000);
}

TEST_P(sql_conformance, an_ended_transaction_takes_no_posted_statement) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.commit();
  EXPECT_EQ(code_of([&] { tx.post(insert_note, {1, "late"}); }), errc::transaction_lost);
}

// Proves O1
TEST_P(sql_conformance, what_a_failed_caller_has_asked_for_is_taken_back_only_if_it_was_not_sent) {
  auto db = open_with_notes();
  auto tx = db->begin();
  EXPECT_TRUE(transaction_parts::drop(tx)) << "nothing";
  const parameters row{1, "note"};
  const repeated once{insert_or_skip_note, {&row, 1}};
  const std::function<void()> sent[] = {
      [&] { tx.execute("select 1"); },
      [&] { tx.execute(select_notes); },
      [&] { tx.execute(statement{select_notes, {}}); },
      [&] { tx.execute_many(insert_or_skip_note, {&row, 1}); },
      [&] { tx.execute_all({&once, 1}); },
      [&] { EXPECT_THROW(tx.execute("this is no SQL"), error); },
  };
  for (const auto& use : sent) {
    use();
    EXPECT_FALSE(transaction_parts::drop(tx)) << &use - sent;
    if (&use == &std::end(sent)[-1]) break;  // some databases take nothing more after that
    transaction_parts::end(tx);
    EXPECT_TRUE(transaction_parts::drop(tx)) << &use - sent;
  }
}

// Proves O1
TEST_P(sql_conformance, a_failed_caller_takes_nothing_of_others_back) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.post(insert_note, {1, "of one"});
  transaction_parts::end(tx);
  tx.post(insert_note, {2, "of another"});
  tx.wake_on_commit();
  const bool taken_back = transaction_parts::drop(tx);
  EXPECT_EQ(taken_back, db->speaks() == dialect::postgres) << "where statements are sent together";
  transaction_parts::end(tx);
  tx.post(insert_note, {3, "of a third"});
  transaction_parts::end(tx);
  EXPECT_TRUE(transaction_parts::drop(tx)) << "of a fourth, who has asked for nothing";
  tx.commit();
  EXPECT_EQ(count_notes(*db), taken_back ? 2 : 3);
  EXPECT_EQ(db->read().execute("select count(*) from notes where id = 2")[0][0].integer(),
            taken_back ? 0 : 1);
}

// Proves C1
TEST_P(sql_conformance, parts_after_a_mark_are_taken_back_together_where_that_is_cheap) {
  auto db = open_with_notes();
  auto tx = db->begin();
  EXPECT_FALSE(transaction_parts::drop_all(tx)) << "there is no mark";
  tx.execute(insert_note, {1, "before"});
  transaction_parts::end(tx);
  const bool marked = transaction_parts::mark(tx);
  EXPECT_EQ(marked, db->speaks() == dialect::sqlite);
  if (!marked) return;
  tx.execute(insert_note, {2, "of one"});
  transaction_parts::end(tx);
  for (const auto* reach : {"savepoint settle_parts", "rollback to SETTLE_PARTS", "release \"settle_parts\""})
    EXPECT_EQ(code_of([&] { tx.execute(reach); }), errc::transaction_control) << reach;
  tx.execute("savepoint own");
  tx.execute(insert_note, {3, "of another"});
  EXPECT_TRUE(transaction_parts::drop_all(tx));
  EXPECT_EQ(code_of([&] { tx.execute("rollback to own"); }), errc::transaction_control);
  tx.execute(insert_note, {4, "of a third"});
  transaction_parts::end(tx);
  EXPECT_TRUE(transaction_parts::mark(tx));
  tx.execute(insert_note, {5, "after the second mark"});
  EXPECT_TRUE(transaction_parts::drop_all(tx));
  EXPECT_TRUE(transaction_parts::drop_all(tx)) << "it stays";
  tx.commit();
  const auto left = db->read().execute("select id from notes order by id");
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0][0].integer(), 1);
  EXPECT_EQ(left[1][0].integer(), 4);
}

// Proves C1
TEST_P(sql_conformance, a_lost_transaction_takes_no_parts_back) {
  auto db = open_with_notes();
  if (db->speaks() != dialect::sqlite) return;
  auto tx = db->begin();
  tx.execute(insert_note, {1, "note"});
  EXPECT_TRUE(transaction_parts::mark(tx));
  EXPECT_THROW(tx.execute("insert or rollback into notes (id, note) values (1, 'the same')"), error);
  EXPECT_FALSE(transaction_parts::drop_all(tx));
  EXPECT_EQ(code_of([&] { transaction_parts::mark(tx); }), errc::transaction_lost);
  EXPECT_EQ(code_of([&] { tx.commit(); }), errc::transaction_lost);
}

TEST_P(sql_conformance, a_commit_is_there_after_the_database_is_opened_again) {
  {
    auto db = open_with_notes();
    add_note(*db, 1, "kept");
  }
  auto again = open();
  EXPECT_EQ(again->read().execute("select note from notes where id = 1")[0][0].text(), "kept");
}

// Proves O1
TEST_P(sql_conformance, a_rollback_leaves_nothing_behind) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.execute("insert into notes (id, note) values (1, 'gone')");
  tx.execute("create table gone_too (id bigint)");
  tx.rollback();
  EXPECT_EQ(count_notes(*db), 0);
  EXPECT_EQ(code_of([&] { db->read().execute("select * from gone_too"); }), errc::statement_failed);
}

// Proves O1
TEST_P(sql_conformance, a_transaction_that_goes_out_of_scope_leaves_nothing_behind) {
  auto db = open_with_notes();
  try {
    auto tx = db->begin();
    tx.execute("insert into notes (id, note) values (1, 'gone')");
    throw std::runtime_error("the caller failed");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(count_notes(*db), 0);
  add_note(*db, 1);  // and nobody waits for it
}

TEST_P(sql_conformance, an_ended_transaction_takes_no_more_statements) {
  auto db = open_with_notes();
  auto committed = db->begin();
  committed.commit();
  EXPECT_EQ(code_of([&] { committed.execute("select 1"); }), errc::transaction_lost);
  EXPECT_EQ(code_of([&] { committed.commit(); }), errc::transaction_lost);
  auto rolled_back = db->begin();
  rolled_back.rollback();
  EXPECT_EQ(code_of([&] { rolled_back.execute("select 1"); }), errc::transaction_lost);
}

TEST_P(sql_conformance, a_violated_constraint_has_its_own_code) {
  auto db = open();
  {
    auto tx = db->begin();
    tx.execute(
        "create table rules (id bigint primary key, needed text not null, small bigint check (small < 10))");
    tx.execute("insert into rules (id, needed, small) values (1, 'x', 1)");
    tx.commit();
  }
  for (const auto* sql : {"insert into rules (id, needed, small) values (1, 'same id', 1)",
                          "insert into rules (id, needed, small) values (2, null, 1)",
                          "insert into rules (id, needed, small) values (3, 'x', 10)"}) {
    auto tx = db->begin();
    EXPECT_EQ(code_of([&] { tx.execute(sql); }), errc::constraint_violated) << sql;
  }
}

TEST_P(sql_conformance, a_foreign_key_is_enforced) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.execute("create table marks (note_id bigint not null references notes (id))");
  EXPECT_EQ(code_of([&] { tx.execute("insert into marks (note_id) values (404)"); }),
            errc::constraint_violated);
}

TEST_P(sql_conformance, after_a_violated_constraint_a_transaction_goes_on_or_is_lost_as_the_driver_says) {
  auto db = open_with_notes();
  add_note(*db, 1);
  {
    auto tx = db->begin();
    EXPECT_EQ(code_of([&] { tx.execute("insert into notes (id, note) values (1, 'again')"); }),
              errc::constraint_violated);
    const auto next = code_of([&] {
      tx.execute("insert into notes (id, note) values (2, 'after')");
      tx.commit();
    });
    if (GetParam().continues_after_failure)
      EXPECT_EQ(next, std::nullopt);
    else
      EXPECT_EQ(next, errc::transaction_lost);
  }
  EXPECT_EQ(count_notes(*db), GetParam().continues_after_failure ? 2 : 1);
}

// Proves C1: a handler cannot commit by itself
TEST_P(sql_conformance, transaction_control_sent_as_sql_is_refused_and_changes_nothing) {
  auto db = open_with_notes();
  for (const auto* sql : {"begin", "BEGIN", "commit", "end", "rollback", "/* x */ CoMmIt", "-- x\nrollback",
                          "  \n\tCOMMIT ;", "/* begin */ begin /* x */", "; commit"}) {
    auto tx = db->begin();
    tx.execute("insert into notes (id, note) values (1, 'pending')");
    EXPECT_EQ(code_of([&] { tx.execute(sql); }), errc::transaction_control) << sql;
    tx.execute("insert into notes (id, note) values (2, 'still open')");
    tx.rollback();
    EXPECT_EQ(count_notes(*db), 0) << sql;
  }
}

TEST_P(sql_conformance, a_script_cannot_end_the_transaction_either) {
  auto db = open_with_notes();
  {
    auto tx = db->begin();
    EXPECT_EQ(code_of([&] { tx.execute_script("insert into notes (id, note) values (1, 'a'); commit;"); }),
              errc::transaction_control);
  }
  EXPECT_EQ(count_notes(*db), 0);
}

TEST_P(sql_conformance, a_script_runs_all_of_its_statements_in_the_transaction) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.execute_script(
      "insert into notes (id, note) values (1, 'a;b');\n-- a comment; with a semicolon\n"
      "insert into notes (id, note) values (2, 'c');\n");
  EXPECT_EQ(tx.execute("select count(*) from notes")[0][0].integer(), 2);
  tx.rollback();
  EXPECT_EQ(count_notes(*db), 0);
}

TEST_P(sql_conformance, a_read_transaction_cannot_write) {
  auto db = open_with_notes();
  EXPECT_NE(code_of([&] {
              auto tx = db->read();
              tx.execute("insert into notes (id, note) values (1, 'by a reader')");
              tx.commit();
            }),
            std::nullopt);
  EXPECT_EQ(count_notes(*db), 0);
}

TEST_P(sql_conformance, many_different_statement_texts_do_not_wear_out_a_connection) {
  auto db = open_with_notes();
  auto tx = db->begin();
  for (int i = 0; i < 1000; ++i) {
    const auto found = tx.execute("select " + std::to_string(i) + " + $1", {1});
    ASSERT_EQ(found[0][0].integer(), i + 1);
  }
}

}  // namespace
}  // namespace settle::test
