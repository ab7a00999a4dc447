// The participant's guard as functions of PostgreSQL: the same decisions, and the same rows, as in C++.
#include "settle/participate.hpp"
#include "support/saga_world.hpp"

namespace settle::test {
namespace {

constexpr const char* saga = "01020300-0000-0000-0000-000000000000";

struct participants_in_sql : saga_tests {
  // Outcome and answer of a call in a transaction that commits; what is fresh is recorded.
  std::string handle(const std::string& op, int epoch = 1, const std::string& step = "charge",
                     const std::string& as_role = "") {
    const auto names = "'" + std::string(saga) + "', '" + step + "', '" + op + "'";
    return shared->run(
        (as_role.empty() ? "" : "set role " + as_role + "; ") + "do $$ declare said record; begin " +
        "select * into said from settle.participate(" + names + ", " + std::to_string(epoch) +
        "); if said.outcome = 'fresh' then perform settle.record_participation(" + names + ", 'answer of " +
        op + "'); end if; perform set_config('test.said', said.outcome || ' ' || " +
        "coalesce(convert_from(said.answer, 'UTF8'), '-'), false); end $$; " +
        "select current_setting('test.said')");
  }
};

// Proves S7
TEST_P(participants_in_sql, do_a_step_once_and_answer_copies_as_recorded) {
  EXPECT_EQ(handle("do"), "fresh -");
  EXPECT_EQ(handle("do", 2), "repeated answer of do");
  EXPECT_EQ(handle("do", 2, "other"), "fresh -");
  EXPECT_EQ(handle("undo", 2), "fresh -");
  EXPECT_EQ(handle("undo", 3), "repeated answer of undo");
  EXPECT_EQ(handle("do", 3), "repeated answer of do");
}

// Proves S7
TEST_P(participants_in_sql, skip_an_undo_whose_action_never_came_and_refuse_that_action_later) {
  EXPECT_EQ(handle("undo"), "empty -");
  EXPECT_EQ(handle("undo"), "empty -");
  EXPECT_EQ(handle("do"), "late -");
}

// Proves S7
TEST_P(participants_in_sql, refuse_whoever_was_replaced) {
  EXPECT_EQ(handle("do", 5), "fresh -");
  EXPECT_EQ(handle("do", 4, "other"), "stale -");
  EXPECT_EQ(handle("undo", 4), "stale -");
}

// Proves S7
TEST_P(participants_in_sql, know_what_was_done_in_cpp_and_the_other_way_round) {
  const auto in_cpp = [&](saga_op op, const std::string& step) {
    auto tx = db->begin();
    const auto entry = participate(tx, {saga_id::parse(saga).value(), step, op, 1});
    if (entry.fresh()) entry.record(tx, "from C++");
    tx.commit();
    return std::string(to_string(entry.how())) + " " + entry.answer();
  };
  EXPECT_EQ(in_cpp(saga_op::act, "charge"), "fresh ");
  EXPECT_EQ(handle("do"), "repeated from C++");
  EXPECT_EQ(handle("undo"), "fresh -");
  EXPECT_EQ(in_cpp(saga_op::undo, "charge"), "repeated answer of undo");
  EXPECT_EQ(handle("undo", 1, "other"), "empty -");
  EXPECT_EQ(in_cpp(saga_op::act, "other"), "late ");
}

// Proves S7
TEST_P(participants_in_sql, need_no_rights_on_the_tables_and_look_nowhere_else) {
  EXPECT_EQ(handle("do", 1, "charge", "settle_publisher"), "fresh -");
  EXPECT_ANY_THROW(shared->run("set role settle_publisher; delete from settle.saga_guards"));
  shared->run("create table public.saga_guards (like settle.saga_guards)");
  EXPECT_EQ(handle("do", 1, "charge", "settle_publisher"), "repeated answer of do")
      << "whatever the search path has";
  shared->run("drop table public.saga_guards");
  const auto role = "nobody_of_" + shared->name();
  shared->run("create role " + role + "; grant usage on schema settle to " + role);
  EXPECT_ANY_THROW(handle("do", 1, "charge", role)) << "it was not granted";
  shared->run("drop owned by " + role + "; drop role " + role);
}

// Proves S7
TEST_P(participants_in_sql, refuse_calls_that_say_too_little) {
  EXPECT_ANY_THROW(handle("done"));
  EXPECT_ANY_THROW(handle("do", 1, ""));
  EXPECT_ANY_THROW(handle("do", 1, std::string(1001, 'x')));
  EXPECT_ANY_THROW(shared->run("select settle.participate(null, 'charge', 'do', 1)"));
  EXPECT_ANY_THROW(
      shared->run("select settle.participate('" + std::string(saga) + "', 'charge', 'do', null)"));
  EXPECT_ANY_THROW(
      shared->run("select settle.record_participation('" + std::string(saga) + "', 'charge', 'do', 'x')"))
      << "nobody has participated";
  EXPECT_EQ(number("select count(*) from settle.saga_guards"), 0);
}

INSTANTIATE_TEST_SUITE_P(databases, participants_in_sql, ::testing::Values(dialect::postgres), database_name);

}  // namespace
}  // namespace settle::test
