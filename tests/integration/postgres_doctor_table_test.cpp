// settle doctor --table on outbox tables as other people make them.
#include <gtest/gtest.h>

#include <optional>

#include "doctor/doctor.hpp"
#include "settle/error.hpp"
#include "settle/postgres.hpp"
#include "support/doctor_fixture.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"

namespace settle::test {
namespace {

using doctor::severity;

class postgres_doctor_table : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    own.emplace();
    db = postgres::open(own->conninfo());
  }

  doctor::findings examine() { return doctor::examine_table(*db, table, normal); }
  bool found(const std::string& code) { return find(examine(), code) != nullptr; }

  void expect_cure(const std::string& code, severity level) {
    ASSERT_TRUE(eventually([&] { return found(code); })) << code << " was not found, but:\n"
                                                         << complaints(examine());
    const auto all = examine();
    const auto one = *find(all, code);
    EXPECT_EQ(one.level, level) << one.seen;
    run_fix(own->conninfo(), one.fix);
    EXPECT_TRUE(eventually([&] { return !found(code); })) << one.fix << "\ndid not help:\n"
                                                          << complaints(examine());
  }

  std::optional<scratch_database> own;
  std::unique_ptr<database> db;
  std::string table = "outbox";
  doctor::limits normal;
};

constexpr const char* sound =
    "create table outbox (id bigint generated always as identity primary key, event_id uuid not null unique "
    "default "
    "gen_random_uuid(), aggregate_id text not null, payload text, published_at timestamptz); "
    "create index on outbox (id) where published_at is null";

TEST_F(postgres_doctor_table, that_is_sound_has_no_findings) {
  own->run(sound);
  EXPECT_EQ(complaints(examine()), "");
  EXPECT_GE(examine().size(), 6u);
}

// Two transactions, the first to draw a number commits last: this is what the doctor warns of.
TEST_F(postgres_doctor_table, with_a_serial_cursor_loses_late_commits_until_it_holds_transaction_ids) {
  own->run(
      "create table outbox (id bigserial primary key, event_id uuid unique, aggregate_id text, payload "
      "text)");
  pg_session late(own->conninfo());
  late.run("begin; insert into outbox (payload) values ('late')");
  own->run("insert into outbox (payload) values ('early')");
  const auto seen = own->run("select max(id) from outbox");
  late.run("commit");
  EXPECT_EQ(own->run("select count(*) from outbox where id > " + seen), "0") << "the reader never sees it";

  expect_cure("late_commits_lost", severity::problem);
  const auto rest = examine();
  EXPECT_EQ(complaints(rest), "");
  own->run("insert into outbox (payload) values ('still works')");
}

TEST_F(postgres_doctor_table, whose_rows_are_deleted_when_done_loses_nothing) {
  own->run("create table outbox (id bigserial primary key, event_id uuid unique, aggregate_id text)");
  own->run("insert into outbox (aggregate_id) select 'k' from generate_series(1, 100)");
  own->run("delete from outbox");
  EXPECT_TRUE(eventually([&] { return !found("late_commits_lost"); })) << complaints(examine());
}

TEST_F(postgres_doctor_table, with_a_status_needs_an_index_on_what_is_pending) {
  own->run(
      "create table outbox (id bigserial primary key, event_id uuid unique, key text, "
      "status text not null default 'PENDING')");
  expect_cure("no_pending_index", severity::problem);
  EXPECT_EQ(complaints(examine()), "");
  EXPECT_NE(own->run("select indexdef from pg_indexes where tablename = 'outbox' and indexdef ~ 'WHERE'")
                .find("(status = 'PENDING'::text)"),
            std::string::npos);
}

TEST_F(postgres_doctor_table, with_a_flag_or_a_time_needs_it_too) {
  own->run(
      "create table outbox (id bigserial primary key, event_id uuid unique, key text, processed boolean)");
  expect_cure("no_pending_index", severity::problem);
  table = "other";
  own->run(
      "create table other (id bigserial primary key, event_id uuid unique, key text, sent_at timestamp)");
  expect_cure("no_pending_index", severity::problem);
}

TEST_F(postgres_doctor_table, without_a_status_a_number_and_a_time_cannot_be_read) {
  own->run("create table outbox (id uuid primary key, key text, payload text)");
  expect_cure("nothing_to_read_by", severity::problem);
  expect_cure("no_number", severity::problem);
}

TEST_F(postgres_doctor_table, in_the_layout_of_debezium_needs_a_reader_of_the_log) {
  own->run(
      "create table outbox (id uuid primary key, aggregatetype text, aggregateid text, type text, payload "
      "jsonb)");
  const auto all = examine();
  ASSERT_NE(find(all, "no_log_reader"), nullptr) << complaints(all);
  EXPECT_EQ(find(all, "late_commits_lost"), nullptr);
  EXPECT_EQ(find(all, "no_number"), nullptr);
}

TEST_F(postgres_doctor_table, without_keys_gets_them) {
  own->run("create table outbox (id bigserial, payload text, published_at timestamptz)");
  expect_cure("no_primary_key", severity::problem);
  expect_cure("no_event_id", severity::warning);
  expect_cure("event_id_not_unique", severity::warning);
  expect_cure("no_key", severity::warning);
  expect_cure("no_pending_index", severity::problem);
  EXPECT_EQ(complaints(examine()), "");
}

TEST_F(postgres_doctor_table, whose_numbers_are_drawn_in_advance_is_cured) {
  own->run(sound);
  own->run("alter sequence outbox_id_seq cache 50");
  EXPECT_EQ(find(examine(), "sequence_cached")->fix, "alter sequence public.outbox_id_seq cache 1;")
      << "with its schema: whoever runs it may have another search path";
  expect_cure("sequence_cached", severity::problem);
}

TEST_F(postgres_doctor_table, with_a_trigger_that_notifies_is_cured) {
  own->run(sound);
  own->run(
      "create function tell() returns trigger language plpgsql as "
      "$$ begin perform pg_notify('outbox', ''); return null; end $$");
  own->run("create trigger \"Tell them\" after insert on outbox for each statement execute function tell()");
  expect_cure("notify_in_transaction", severity::problem);
}

TEST_F(postgres_doctor_table, that_bloats_is_cured) {
  own->run(sound);
  own->run("alter table outbox set (autovacuum_enabled = off)");
  own->run(
      "insert into outbox (aggregate_id, payload) select 'k', repeat('x', 100) from generate_series(1, "
      "2000)");
  for (int i = 0; i < 5; ++i) own->run("update outbox set published_at = now()");
  normal.dead_rows = 1000;
  normal.bloat_bytes = 100'000;
  expect_cure("dead_rows", severity::problem);
  expect_cure("bloat", severity::warning);
  expect_cure("autovacuum_disabled", severity::problem);
  ASSERT_TRUE(eventually([&] { return found("costly_updates"); }));
  const auto all = examine();
  run_fix(own->conninfo(), find(all, "costly_updates")->fix);
  EXPECT_NE(own->run("select reloptions::text from pg_class where relname = 'outbox'").find("fillfactor=70"),
            std::string::npos);
}

TEST_F(postgres_doctor_table, that_keeps_old_rows_is_cured) {
  own->run(sound);
  own->run(
      "insert into outbox (aggregate_id, published_at) "
      "select 'k', now() - interval '10 days' from generate_series(1, 2000)");
  own->run("insert into outbox (aggregate_id) values ('pending')");
  normal.kept_rows = 1000;
  expect_cure("rows_kept", severity::warning);
  EXPECT_EQ(own->run("select string_agg(aggregate_id, ',') from outbox"), "pending");
}

TEST_F(postgres_doctor_table, that_is_unlogged_is_cured) {
  own->run(sound);
  own->run("alter table outbox set unlogged");
  expect_cure("unlogged_table", severity::problem);
}

TEST_F(postgres_doctor_table, may_have_any_name) {
  own->run("create schema \"Sales dept\"");
  own->run(
      "create table \"Sales dept\".\"Out\"\"box; drop\" (\"ID\" bigserial, \"Processed At\" timestamptz)");
  table = R"("Sales dept"."Out""box; drop")";
  expect_cure("no_primary_key", severity::problem);
  expect_cure("no_event_id", severity::warning);
  own->run("create table \"MyOutbox\" (id bigserial primary key)");
  table = "MyOutbox";
  EXPECT_FALSE(examine().empty());
}

TEST_F(postgres_doctor_table, that_is_partitioned_is_judged_as_one) {
  own->run(
      "create table outbox (id bigint generated by default as identity, event_id uuid, key text, at "
      "timestamptz, "
      "status text not null default 'NEW', primary key (id, at)) partition by range (at)");
  own->run("create table outbox_1 partition of outbox for values from ('2020-01-01') to ('2040-01-01')");
  own->run("insert into outbox (at) select '2024-01-01' from generate_series(1, 50)");
  expect_cure("no_pending_index", severity::problem);
  normal.kept_rows = 40;
  ASSERT_TRUE(eventually([&] { return found("rows_kept"); }));
  EXPECT_TRUE(find(examine(), "rows_kept")->fix.empty()) << "partitions are dropped";
}

TEST_F(postgres_doctor_table, that_is_not_there_or_not_a_table_is_refused) {
  own->run("create view seen as select 1");
  migrate(*db);
  for (const auto* name :
       {"nothing", "a.b.c.d", "", "x; drop table y", "seen", "settle.outbox", "settle.shares"}) {
    table = name;
    EXPECT_EQ(code_of([&] { examine(); }), errc::invalid_argument) << name;
  }
}

}  // namespace
}  // namespace settle::test
