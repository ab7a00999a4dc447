// Whether a mapping fits somebody's table, and what messages its rows make.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "settle/error.hpp"
#include "settle/ids.hpp"
#include "settle/sqlite.hpp"
#include "settle/table_relay.hpp"
#include "support/adopted_tables.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;
using test::status_ddl;

struct table_mappings : test::adopted_tables {};

// Two tables both have a row 1; consumers deduplicate by the id alone.
TEST_F(table_mappings, ids_that_are_no_uuids_become_some_that_no_other_table_has) {
  for (const auto* name : {"a", "b"})
    own->run(
        fmt::format("create table {0} (id serial primary key, payload text, sent boolean default false);"
                    "insert into {0} (payload) values ('x')",
                    name));
  table_mapping m{.table = "public.a",
                  .topic = {.text = "t"},
                  .type = {.text = "e"},
                  .payload = "payload",
                  .published = "sent"};
  table_relay a(*db, destination, m);
  run(a);
  m.table = "public.b";
  table_relay b(*db, destination, m);
  run(b);
  own->run("update a set sent = false");
  run(a);
  ASSERT_EQ(destination.seen.size(), 3u);
  EXPECT_TRUE(uuid::parse(destination.seen[0].id));
  EXPECT_NE(destination.seen[0].id, destination.seen[1].id);
  EXPECT_EQ(destination.seen[0].id, destination.seen[2].id) << "a copy has the same id";
}

TEST_F(table_mappings, headers_travel_as_extensions_and_cannot_pass_for_ours) {
  own->run(status_ddl);
  own->run(
      "insert into outbox (topic, aggregate_id, event_type, payload, headers) values ('t', 'k', 'e', '1', "
      R"('{"Trace-Id": "a\nb", "sequence": "1", "settleplace": 7, "traceparent": "00-1", "!": "x"}'))");
  table_relay r(*db, destination, status_table("public.outbox"));
  run(r);
  ASSERT_EQ(destination.seen.size(), 1u);
  EXPECT_EQ(
      destination.seen[0].extensions,
      (attributes{
          {"headersequence", "1"}, {"headersettleplace", "7"}, {"traceid", "a b"}, {"traceparent", "00-1"}}));
}

std::string message_of_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    return e.what();
  }
  return "nothing was thrown";
}

TEST_F(table_mappings, a_mapping_that_does_not_fit_is_refused_with_what_is_there) {
  own->run(status_ddl);
  const auto refusal = [&](const table_mapping& m) {
    return message_of_error([&] {
      table_relay r(*db, destination, m);
      r.run_once();
    });
  };
  auto m = status_table("public.outbxo");
  EXPECT_NE(refusal(m).find("did you mean public.outbox?"), std::string::npos) << refusal(m);
  m = status_table("public.outbox");
  m.payload = "paylod";
  EXPECT_NE(
      refusal(m).find("'paylod', but public.outbox has no such column; did you mean 'payload'? It has: id, "),
      std::string::npos)
      << refusal(m);
  m = status_table("public.outbox");
  m.created_at = "topic";
  EXPECT_NE(refusal(m).find("is text in public.outbox; it has to be one of: timestamptz, timestamp"),
            std::string::npos)
      << refusal(m);
  EXPECT_NE(refusal(status_table("outbox")).find("write it as schema.table"), std::string::npos);
  own->run(
      "create type state as enum ('PENDING', 'SENT'); create table typed (id serial primary key, p text, s "
      "state)");
  m = {.table = "public.typed", .topic = {.text = "t"}, .type = {.text = "e"}, .payload = "p", .status = "s"};
  EXPECT_NE(
      refusal(m).find("published_word is 'PUBLISHED', which the enum state of public.typed.s does not have"),
      std::string::npos)
      << refusal(m);
  m.published_word = "SENT";
  m.failed_word = "";
  own->run("insert into typed (p, s) values ('x', 'PENDING')");
  table_relay fits(*db, destination, m);
  run(fits);
  EXPECT_EQ(cell("select s from typed"), "SENT");
}

TEST_F(table_mappings, a_column_that_goes_away_later_is_named) {
  own->run(status_ddl);
  table_relay r(*db, destination, status_table("public.outbox"));
  run(r);
  own->run("alter table outbox rename column headers to header");
  add("k", "1");
  EXPECT_ANY_THROW(r.run_once());
  EXPECT_NE(message_of_error([&] { r.run_once(); }).find("did you mean 'header'?"), std::string::npos);
}

TEST_F(table_mappings, only_postgresql_tables_can_be_adopted) {
  const test::temp_dir dir;
  const auto file = sqlite::open(dir.file("a.db"));
  const auto why = message_of_error([&] { table_relay(*file, destination, status_table("public.outbox")); });
  EXPECT_NE(why.find("is not PostgreSQL"), std::string::npos) << why;
}

TEST_F(table_mappings, names_are_quoted_and_words_are_only_words) {
  own->run(
      R"(create schema "My ""S"; create table "My ""S"."out.box" ("Id" uuid primary key default gen_random_uuid(), )"
      R"("select" text, "st'a""te" text default 'it''s \ new'))");
  own->run(R"(insert into "My ""S"."out.box" ("select") values ('x'))");
  table_mapping m{.table = "My \"S.out.box",
                  .id = "Id",
                  .topic = {.text = "t"},
                  .type = {.text = "e"},
                  .payload = "select",
                  .status = "st'a\"te",
                  .pending_word = "it's \\ new",
                  .published_word = "'; drop table x; --"};
  table_relay r(*db, destination, m);
  run(r);
  EXPECT_EQ(destination.payloads(), names{"x"});
  EXPECT_EQ(cell(R"(select "st'a""te" from "My ""S"."out.box")"), "'; drop table x; --");
}

// Each once, with the statement that mends it.
TEST_F(table_mappings, a_table_that_cannot_be_read_well_is_named_in_the_log) {
  own->run("create table bare (id bigint generated by default as identity (cache 10), p text, done boolean)");
  table_mapping m{.table = "public.bare",
                  .topic = {.text = "t"},
                  .type = {.text = "e"},
                  .payload = "p",
                  .published = "done"};
  table_relay r(*db, destination, m);
  run(r);
  run(r);
  EXPECT_EQ(log.count("table_relay_id_not_unique"), 1u);
  EXPECT_EQ(log.count("table_relay_sequence_cached"), 1u);
  EXPECT_EQ(
      log.count("table_relay_index_missing table=public.bare problem=no index finds the rows that wait: "
                "every look reads past those that are published statement=create index concurrently on "
                "\"public\".\"bare\" (\"id\") where not \"done\""),
      1u);
  own->run("create unique index on bare (id); create index on bare (id) where not done");
  own->run("alter sequence bare_id_seq cache 1");
  table_relay better(*db, destination, m);
  run(better);
  EXPECT_EQ(log.count("table_relay_i"), 2u);
  EXPECT_EQ(log.count("table_relay_sequence_cached"), 1u);
}

// The grants of docs/guides/existing_tables.md are enough, and each is needed.
TEST_F(table_mappings, a_role_with_the_listed_rights_can_relay) {
  own->run(status_ddl);
  add("k", "1");
  const auto role = own->name() + "_relaying";
  own->run("create role " + role);
  const auto theirs =
      postgres::open(test::with(own->conninfo(), "options='-c role=" + role + "'"), {.env = env});
  table_relay r(*theirs, destination, status_table("public.outbox"));
  for (const auto* grant :
       {"usage on schema settle, public", "select on settle.identity",
        "select, insert, update on settle.shares", "select, insert, update, delete on settle.members",
        "execute on function settle.lane(text)", "select, update on public.outbox"}) {
    EXPECT_ANY_THROW(run(r)) << "without " << grant;
    own->run(fmt::format("grant {} to {}", grant, role));
  }
  EXPECT_NO_THROW(run(r));
  r.leave();
  EXPECT_EQ(destination.payloads(), names{"1"});
  EXPECT_EQ(count("settle.members"), 0);
  own->run(fmt::format("drop owned by {0}; drop role {0}", role));
}

// What a look reads is counted by the server, not timed.
TEST_F(table_mappings, published_rows_cost_nothing_to_read_past) {
  own->run(status_ddl);
  own->run(
      "insert into outbox (topic, aggregate_id, event_type, status) "
      "select 't', 'k', 'e', 'PUBLISHED' from generate_series(1, 20000)");
  own->run("vacuum analyze outbox");
  own->run("select pg_stat_reset()");
  add("k", "1");
  auto mine = postgres::open(own->conninfo(), {.env = env});
  {
    table_relay r(*mine, destination, status_table("public.outbox"));
    run(r);
  }
  mine.reset();  // a session reports its statistics at the latest when it ends
  EXPECT_EQ(destination.payloads(), names{"1"});
  const auto rows_read = [&] {
    return std::stoll(
        cell("select coalesce(sum(seq_tup_read + idx_tup_fetch), 0) from pg_stat_user_tables where relname = "
             "'outbox'"));
  };
  for (int i = 0; i < 1000 && rows_read() == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_GT(rows_read(), 0);
  EXPECT_LT(rows_read(), 100);
}

}  // namespace
}  // namespace settle
