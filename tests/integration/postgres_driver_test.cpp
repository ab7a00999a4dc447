// What is PostgreSQL's own beyond the conformance suite: types, sessions, limits, wake-ups, refusals.
#include <gtest/gtest.h>

#include <optional>
#include <stop_token>
#include <thread>

#include "settle/driver/database.hpp"
#include "settle/error.hpp"
#include "settle/postgres.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

class postgres_driver : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = postgres_missing(); !why.empty()) GTEST_SKIP() << why;
    server_.emplace();
  }
  std::unique_ptr<database> open(postgres::options with = {}) {
    with.env.log = &log_;
    return postgres::open(server_->conninfo(), with);
  }
  std::unique_ptr<database> open_with_notes(const postgres::options& with = {}) {
    server_->run("create table notes (id bigint primary key, note text not null)");
    return open(with);
  }
  static std::int64_t backend_of(transaction& tx) {
    return tx.execute("select pg_backend_pid()")[0][0].integer();
  }
  void terminate(std::int64_t backend) const {
    server_->run("select pg_terminate_backend(" + std::to_string(backend) + ", 5000)");
  }

  quiet_log log_;
  std::optional<scratch_database> server_;
};

// The error that an action throws; fails the test if it throws none.
error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return {errc::cancelled, "none"};
}

bool mentions(const error& e, const std::string& text) {
  return std::string(e.what()).find(text) != std::string::npos;
}

TEST_F(postgres_driver, every_documented_type_comes_back_as_its_value) {
  auto db = open();
  auto tx = db->read();
  const auto found = tx.execute(
      "select true, 1::int2, -2::int4, 3::int8, 4::oid, 5::text::xid8, 1.5::float4, 2.5::float8, "
      "'v'::varchar,"
      " 'c '::char(3), 'n'::name, '{\"a\": 1}'::json, '{\"b\": 2}'::jsonb,"
      " '0190163d-8694-739b-aea5-966c26f8ad91'::uuid, '\\x00ff'::bytea, -12345678.900::numeric,"
      " '1970-01-01 00:00:01.5+00'::timestamptz, '1969-12-31 23:59:59'::timestamp, '16/B374D848'::pg_lsn,"
      " pg_advisory_xact_lock(1), null::int8, 'infinity'::timestamptz");
  const auto row = found[0];
  const std::int64_t integers[] = {1, 1, -2, 3, 4, 5};
  for (std::size_t i = 0; i < std::size(integers); ++i) EXPECT_EQ(row[i].integer(), integers[i]) << i;
  EXPECT_EQ(row[6].real(), 1.5);
  EXPECT_EQ(row[7].real(), 2.5);
  const char* texts[] = {"v", "c  ", "n", "{\"a\": 1}", "{\"b\": 2}", "0190163d-8694-739b-aea5-966c26f8ad91"};
  for (std::size_t i = 0; i < std::size(texts); ++i) EXPECT_EQ(row[8 + i].text(), texts[i]);
  EXPECT_EQ(row[14].bytes(), std::string("\0\xff", 2));
  EXPECT_EQ(row[15].text(), "-12345678.900");
  EXPECT_EQ(row[16].integer(), 1'500'000);
  EXPECT_EQ(row[17].integer(), -1'000'000);
  EXPECT_EQ(row[18].text(), "16/B374D848");
  EXPECT_TRUE(row[19].is_null());
  EXPECT_TRUE(row[20].is_null());
  EXPECT_EQ(row[21].integer(), std::numeric_limits<std::int64_t>::max());
}

TEST_F(postgres_driver, a_type_without_a_value_is_refused_by_the_name_of_its_column) {
  auto db = open();
  for (const auto* sql : {"select array[1, 2] as shape", "select int4range(1, 2) as shape"}) {
    auto tx = db->read();
    const auto e = error_of([&] { tx.execute(sql); });
    EXPECT_EQ(e.code(), errc::statement_failed);
    EXPECT_TRUE(mentions(e, "'shape'") && mentions(e, "cast(shape as text)")) << e.what();
  }
}

TEST_F(postgres_driver, arrays_are_unnested_as_they_were_given) {
  auto db = open();
  auto tx = db->read();
  const std::vector<std::string> words{"a", "", "q\"u\\o,te", "{}", "null", "Zürich\n"};
  const auto found = tx.execute("select unnest($1::text[])", {postgres::array(words)});
  ASSERT_EQ(found.size(), words.size());
  for (std::size_t i = 0; i < words.size(); ++i) EXPECT_EQ(found[i][0].text(), words[i]);
  const std::vector<blob> bytes{{std::string("\0\xff\\\"", 4)}, {}};
  const auto back = tx.execute("select unnest($1::bytea[])", {postgres::array(bytes)});
  EXPECT_EQ(back[0][0].bytes(), bytes[0].bytes);
  EXPECT_EQ(back[1][0].bytes(), "");
  const std::vector<std::int64_t> numbers{1, -2};
  EXPECT_EQ(tx.execute("select sum(n)::bigint from unnest($1::bigint[]) n", {postgres::array(numbers)})[0][0]
                .integer(),
            -1);
}

TEST_F(postgres_driver, named_statements_are_prepared_once_and_unnamed_ones_never) {
  constexpr query one{"test.one", "", "select $1::bigint + 1"};
  auto db = open({.connections_max = 1});
  for (int i = 0; i < 3; ++i) {
    auto tx = db->read();
    EXPECT_EQ(tx.execute(one, {i})[0][0].integer(), i + 1);
    EXPECT_EQ(tx.execute("select $1::bigint + 2", {i})[0][0].integer(), i + 2);
  }
  auto tx = db->read();
  const auto kept =
      tx.execute("select statement from pg_prepared_statements where statement like 'select $1%'");
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0][0].text(), one.postgres);
}

TEST_F(postgres_driver, a_statement_that_could_not_be_prepared_is_prepared_again) {
  constexpr query count{"test.count", "", "select count(*) from late"};
  auto db = open({.connections_max = 1});
  EXPECT_EQ(code_of([&] { db->read().execute(count); }), errc::statement_failed);
  server_->run("create table late (id bigint)");
  EXPECT_EQ(db->read().execute(count)[0][0].integer(), 0);
}

TEST_F(postgres_driver, a_table_that_changes_under_a_prepared_statement_costs_one_retryable_error) {
  constexpr query all{"test.all", "", "select * from notes"};
  auto db = open_with_notes({.connections_max = 1});
  db->read().execute(all);
  server_->run("alter table notes add column more bigint");
  const auto e = error_of([&] { db->read().execute(all); });
  EXPECT_TRUE(e.retryable()) << e.what();
  EXPECT_EQ(code_of([&] { db->read().execute(all); }), std::nullopt);
}

// A sequence tells: what was drawn from it stays drawn.
TEST_F(postgres_driver, what_was_posted_and_rolled_back_was_never_sent_unless_there_was_much_of_it) {
  server_->run("create sequence drawn");
  const query draw{"test.draw", "", "select nextval('drawn'), length($1::text)"};
  const auto drawn = [&] {
    return open()
        ->read()
        .execute("select case when is_called then last_value else 0 end from drawn")[0][0]
        .integer();
  };
  for (const bool prepared : {true, false}) {
    auto db = open({.prepared_statements = prepared});
    auto tx = db->begin();
    tx.execute("select 1");
    for (int n = 0; n < 10; ++n) tx.post(draw, {"little"});
    tx.rollback();
  }
  EXPECT_EQ(drawn(), 0);
  auto db = open();
  {
    auto tx = db->begin();
    for (int n = 0; n < 10; ++n) tx.post(draw, {std::string(2000, 'x')});
  }
  const auto early = drawn();
  EXPECT_GE(early, 5) << "so that the server has something to do meanwhile";
  EXPECT_LT(early, 10);
  auto tx = db->begin();
  for (int n = 0; n < 10; ++n) tx.post(draw, {"little"});
  tx.commit();
  EXPECT_EQ(drawn(), early + 10);
}

// Proves C1
TEST_F(postgres_driver, what_a_caller_has_posted_is_taken_back_unless_it_was_too_much_to_wait) {
  auto db = open_with_notes();
  const query insert{"test.insert", "", "insert into notes (id, note) values ($1, $2)"};
  auto tx = db->begin();
  tx.execute("select 1");
  int next = 0, kept = 0;
  for (int caller = 0; caller < 40; ++caller) {
    transaction_parts::end(tx);  // after some of them, what others have posted is sent
    tx.post(query{"test.savepoint", "", "savepoint mine"});
    for (int n = 0; n < 3; ++n) tx.post(insert, {next++, std::string(300, 'x')});
    if (caller % 2 == 0)
      kept += 3;
    else
      EXPECT_TRUE(transaction_parts::drop(tx)) << caller;
  }
  transaction_parts::end(tx);
  for (int n = 0; n < 40; ++n) tx.post(insert, {next++, std::string(300, 'x')});
  EXPECT_FALSE(transaction_parts::drop(tx)) << "a part of it is with the server already";
  transaction_parts::end(tx);
  tx.post(insert, {next++, "x"});
  tx.execute("select 1");
  EXPECT_FALSE(transaction_parts::drop(tx)) << "sent with the next statement";
  tx.commit();
  EXPECT_EQ(db->read().execute("select count(*) from notes")[0][0].integer(), kept + 41);
}

TEST_F(postgres_driver, what_a_caller_has_posted_to_no_avail_ends_its_part_as_well) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.execute("savepoint outer_one");
  transaction_parts::end(tx);
  tx.post(query{"test.savepoint", "", "savepoint mine"});
  EXPECT_TRUE(transaction_parts::drop(tx));
  EXPECT_EQ(code_of([&] { tx.execute("rollback to savepoint mine"); }), errc::transaction_control)
      << "it was never set";
}

TEST_F(postgres_driver, what_cannot_be_sent_is_refused_when_it_is_posted) {
  auto db = open_with_notes();
  auto tx = db->begin();
  const query insert{"test.insert", "", "insert into notes (id, note) values ($1, $2)"};
  tx.post(insert, {1, "fine"});
  EXPECT_EQ(code_of([&] { tx.post(insert, {2, std::string("a\0b", 3)}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { tx.post(query{"test.nothing", "select 1", ""}); }), errc::statement_failed);
  tx.commit();
  EXPECT_EQ(db->read().execute("select count(*) from notes")[0][0].integer(), 1);
}

TEST_F(postgres_driver, behind_a_failed_statement_a_savepoint_of_the_caller_still_helps) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.execute("insert into notes (id, note) values (1, 'kept')");
  tx.execute("savepoint a");
  EXPECT_EQ(code_of([&] { tx.execute("insert into notes (id, note) values (1, 'again')"); }),
            errc::constraint_violated);
  EXPECT_EQ(code_of([&] { tx.execute("select 1"); }), errc::transaction_lost);
  tx.execute("rollback to savepoint a");
  tx.execute("insert into notes (id, note) values (2, 'after')");
  tx.commit();
  EXPECT_EQ(server_->run("select count(*) from notes"), "2");
}

TEST_F(postgres_driver, a_deferred_constraint_refuses_the_commit_and_nothing_is_in_doubt) {
  server_->run("create table parents (id bigint primary key)");
  server_->run("create table children (parent bigint references parents (id) deferrable initially deferred)");
  auto db = open();
  auto tx = db->begin();
  tx.execute("insert into children (parent) values (404)");
  const auto e = error_of([&] { tx.commit(); });
  EXPECT_EQ(e.code(), errc::constraint_violated);
  EXPECT_FALSE(e.outcome_unknown());
  EXPECT_EQ(server_->run("select count(*) from children"), "0");
}

// The server answers such a statement before it commits. What the commit says comes after the answer.
TEST_F(postgres_driver, a_deferred_constraint_refuses_a_statement_that_is_a_transaction_of_its_own) {
  server_->run("create table parents (id bigint primary key)");
  server_->run("create table children (parent bigint references parents (id) deferrable initially deferred)");
  auto db = open();
  constexpr query orphan{"test.orphan", "", "insert into children (parent) values (404) returning parent"};
  for (int i = 0; i < 3; ++i) {  // also with the statement prepared
    const auto e = error_of([&] { db->begin().commit_with({orphan, {}}); });
    EXPECT_EQ(e.code(), errc::constraint_violated);
    EXPECT_FALSE(e.outcome_unknown());
  }
  EXPECT_EQ(server_->run("select count(*) from children"), "0");
}

TEST_F(postgres_driver, a_commit_after_a_failure_that_was_swallowed_is_no_success) {
  auto db = open_with_notes();
  auto tx = db->begin();
  tx.execute("insert into notes (id, note) values (1, 'x')");
  EXPECT_NE(code_of([&] { tx.execute("select 1 / 0"); }), std::nullopt);
  const auto e = error_of([&] { tx.commit(); });
  EXPECT_EQ(e.code(), errc::transaction_lost);
  EXPECT_FALSE(e.outcome_unknown());
  EXPECT_EQ(server_->run("select count(*) from notes"), "0");
}

TEST_F(postgres_driver, a_lock_that_another_holds_is_waited_for_and_then_store_busy) {
  auto db = open_with_notes({.busy_timeout = 100ms});
  server_->run("insert into notes values (1, 'x')");
  auto holder = db->begin();
  holder.execute("update notes set note = 'held' where id = 1");
  auto other = db->begin();
  EXPECT_EQ(code_of([&] { other.execute("update notes set note = 'wanted' where id = 1"); }),
            errc::store_busy);
}

TEST_F(postgres_driver, of_two_transactions_that_deadlock_one_is_told_to_try_again) {
  auto db = open_with_notes();
  server_->run("insert into notes values (1, 'x'), (2, 'x')");
  std::atomic<int> busy = 0, others = 0;
  const auto cross = [&](int first, int second, std::stop_token) {
    auto tx = db->begin();
    tx.execute("update notes set note = 'y' where id = $1", {first});
    tx.execute("select pg_sleep(0.3)");  // until the other has its first row too
    const auto code = code_of([&] {
      tx.execute("update notes set note = 'y' where id = $1", {second});
      tx.commit();
    });
    if (code == errc::store_busy)
      ++busy;
    else if (code)
      ++others;
  };
  {
    std::jthread one([&](std::stop_token s) { cross(1, 2, s); });
    std::jthread two([&](std::stop_token s) { cross(2, 1, s); });
  }
  EXPECT_EQ(busy, 1);
  EXPECT_EQ(others, 0);
}

TEST_F(postgres_driver, a_statement_past_its_deadline_is_cancelled_and_the_connection_lives_on) {
  auto db = open({.statement_timeout = 200ms, .connections_max = 1});
  std::int64_t backend = 0;
  {
    auto tx = db->begin();
    backend = backend_of(tx);
    EXPECT_EQ(code_of([&] { tx.execute("select pg_sleep(30)"); }), errc::store_busy);
  }
  auto tx = db->begin();
  EXPECT_EQ(backend_of(tx), backend);
}

// So is one whose request came before it
TEST_F(postgres_driver, a_statement_that_survives_a_request_to_cancel_is_cancelled_by_the_next) {
  auto db = open({.statement_timeout = 200ms, .connections_max = 1});
  const auto deaf_once =
      "do $$ begin begin perform pg_sleep(30); exception when query_canceled then null; end; perform "
      "pg_sleep(30); end $$";
  std::int64_t backend = 0;
  {
    auto tx = db->begin();
    backend = backend_of(tx);
    EXPECT_EQ(code_of([&] { tx.execute(deaf_once); }), errc::store_busy);
  }
  auto tx = db->begin();
  EXPECT_EQ(backend_of(tx), backend);
}

TEST_F(postgres_driver, a_statement_ends_when_the_caller_stops) {
  auto db = open({.connections_max = 1});
  std::stop_source stop;
  const auto started = steady::now();
  {
    auto tx = db->begin(stop.get_token());
    tx.execute("select 1");
    std::jthread stopper([&] { stop.request_stop(); });
    EXPECT_EQ(code_of([&] { tx.execute("select pg_sleep(30)"); }), errc::cancelled);
    EXPECT_EQ(code_of([&] { tx.commit(); }), errc::cancelled);
  }
  EXPECT_LT(steady::now() - started, 10s);
  EXPECT_EQ(code_of([&] { db->begin().execute("select 1"); }), std::nullopt);
}

TEST_F(postgres_driver, a_commit_with_its_last_statement_is_not_stopped_once_it_is_under_way) {
  auto db = open({.connections_max = 1});
  auto other = open({.connections_max = 2});
  std::optional<owned_transaction> holder(other->begin());
  holder->execute("select pg_advisory_xact_lock(7)");
  const auto waits = [&] {
    return !other->read()
                .execute("select 1 from pg_locks where locktype = 'advisory' and objid = 7 and not granted")
                .empty();
  };
  std::stop_source stop;
  std::jthread stopper([&] {
    while (!waits()) std::this_thread::yield();
    stop.request_stop();
    for (int looks = 0; looks < 100 && waits(); ++looks) std::this_thread::yield();
    holder.reset();
  });
  auto tx = db->begin(stop.get_token());
  tx.execute("select 1");
  constexpr query wait{"test_wait", "", "select pg_advisory_xact_lock(7)"};
  EXPECT_EQ(code_of([&] { tx.commit_with({wait, {}}); }), std::nullopt);
}

TEST_F(postgres_driver, an_idle_connection_that_the_server_ended_is_replaced_without_an_error) {
  auto db = open({.connections_max = 1});
  std::int64_t backend = 0;
  {
    auto tx = db->begin();
    backend = backend_of(tx);
    tx.commit();
  }
  terminate(backend);
  auto tx = db->begin();
  EXPECT_NE(backend_of(tx), backend);
}

// Proves O1: a connection that dies before the commit leaves nothing, and says so without a doubt
TEST_F(postgres_driver, a_connection_that_is_ended_inside_a_transaction_leaves_nothing_behind) {
  auto db = open_with_notes({.connections_max = 1});
  for (const bool at_commit : {false, true}) {
    auto tx = db->begin();
    tx.execute("insert into notes (id, note) values (1, 'x')");
    terminate(backend_of(tx));
    const auto e = error_of([&] { at_commit ? tx.commit() : void(tx.execute("select 1")); });
    EXPECT_EQ(e.code(), errc::store_unavailable) << e.what();
    EXPECT_FALSE(e.outcome_unknown());
    EXPECT_EQ(code_of([&] { tx.execute("select 1"); }), errc::transaction_lost);
  }
  auto tx = db->begin();
  EXPECT_EQ(tx.execute("select count(*) from notes")[0][0].integer(), 0);
}

TEST_F(postgres_driver, a_session_knows_its_cluster) {
  auto db = open();
  const auto found = identity_of(db->read());
  ASSERT_TRUE(found);
  EXPECT_EQ(std::to_string(found->system_identifier),
            server_->run("select system_identifier from pg_control_system()"));
  EXPECT_EQ(found->timeline, 1);
  EXPECT_FALSE(found->in_recovery);
}

// A role without any rights, for as long as a test needs it.
class plain_role {
 public:
  plain_role(const scratch_database& on, const std::string& more) : on_(on), name_("role_" + on.name()) {
    on.run("create role " + name_ + " login password 'plain-secret' " + more);
  }
  ~plain_role() { on_.run("drop role " + name_); }
  plain_role(const plain_role&) = delete;
  plain_role& operator=(const plain_role&) = delete;
  std::string conninfo() const { return with(on_.conninfo(), "user=" + name_ + " password=plain-secret"); }

 private:
  const scratch_database& on_;
  std::string name_;
};

TEST_F(postgres_driver, a_role_without_rights_sees_the_cluster_and_is_told_what_it_may_not) {
  const plain_role role(*server_, "");
  server_->run("create table secrets (id bigint)");
  auto db = postgres::open(role.conninfo());
  EXPECT_TRUE(identity_of(db->read()));
  auto tx = db->begin();
  const auto e = error_of([&] { tx.execute("select * from secrets"); });
  EXPECT_EQ(e.code(), errc::statement_failed);
  EXPECT_TRUE(mentions(e, "42501")) << e.what();
}

TEST_F(postgres_driver, a_server_out_of_connections_is_busy_and_recovers_by_itself) {
  const plain_role role(*server_, "connection limit 1");
  auto db = postgres::open(role.conninfo());
  {
    auto first = db->begin();
    const auto e = error_of([&] { db->begin(); });
    EXPECT_EQ(e.code(), errc::store_busy);
    EXPECT_TRUE(mentions(e, "53300")) << e.what();
  }
  EXPECT_EQ(code_of([&] { db->begin().execute("select 1"); }), std::nullopt);
}

TEST_F(postgres_driver, a_database_that_is_set_read_only_says_so_and_recovers_by_itself) {
  auto db = open_with_notes();
  const auto write = [&] {
    auto tx = db->begin();
    tx.execute("insert into notes (id, note) values (1, 'x')");
    tx.commit();
  };
  server_->run("alter database " + server_->name() + " set default_transaction_read_only = on");
  const auto e = error_of(write);
  EXPECT_EQ(e.code(), errc::store_unavailable);
  EXPECT_TRUE(e.retryable());
  EXPECT_TRUE(mentions(e, "read_only")) << e.what();
  run_sql(postgres_conninfo(),
          "alter database " + server_->name() + " set default_transaction_read_only = off");
  EXPECT_EQ(code_of(write), std::nullopt);
}

TEST_F(postgres_driver, settles_missing_tables_are_told_from_the_users) {
  auto db = open();
  EXPECT_EQ(code_of([&] { db->begin().execute("select * from settle.shares"); }), errc::schema_missing);
  EXPECT_EQ(code_of([&] { db->begin().execute("select settle.publish('a')"); }), errc::schema_missing);
  EXPECT_EQ(code_of([&] { db->begin().execute("select * from shares"); }), errc::statement_failed);
}

TEST_F(postgres_driver, no_error_of_connecting_contains_the_password) {
  const auto wrong = with(server_->conninfo(), "password=wrong-secret connect_timeout=1");
  for (const auto& conninfo : {wrong, with(wrong, "host=127.0.0.1 port=1"), with(wrong, "dbname=nowhere"),
                               with(wrong, "host=/nowhere"), with(wrong, "sslmode=require")}) {
    auto db = postgres::open(conninfo);
    const auto e = error_of([&] { db->begin(); });
    EXPECT_EQ(e.code(), errc::store_unavailable) << e.what();
    EXPECT_FALSE(mentions(e, "wrong-secret")) << e.what();
  }
}

TEST_F(postgres_driver, notices_go_to_the_log) {
  auto db = open();
  db->begin().execute("do $$ begin raise notice 'hello'; end $$");
  EXPECT_EQ(log_.count("postgres_notice text=hello"), 1u);
}

TEST_F(postgres_driver, a_watch_listens_again_after_its_connection_was_ended) {
  auto db = open_with_notes();
  auto other = open();
  auto arrivals = db->watch();
  arrivals->wait(0s, {});
  const auto listener = [&] {
    return server_->run(
        "select coalesce(max(pid), 0) from pg_stat_activity where query like 'listen%' and "
        "datname = current_database()");
  };
  const auto first = listener();
  ASSERT_NE(first, "0");
  terminate(std::stoll(first));
  while (listener() == "0") arrivals->wait(100ms, {});
  std::jthread committer([&] {
    auto tx = other->begin();
    tx.execute("insert into notes (id, note) values (1, 'x')");
    tx.wake_on_commit();
    tx.commit();
  });
  const auto started = steady::now();
  while (db->read().execute("select 1 from notes").empty()) arrivals->wait(20s, {});
  EXPECT_LT(steady::now() - started, 10s);
}

TEST_F(postgres_driver, many_commits_in_a_moment_share_wake_ups) {
  auto db = open_with_notes();
  for (int i = 0; i < 100; ++i) {
    auto tx = db->begin();
    tx.execute("insert into notes (id, note) values ($1, 'x')", {i});
    tx.wake_on_commit();
    tx.commit();
  }
  // One connection of its own for all of them, and none inside the transactions.
  EXPECT_EQ(
      server_->run("select count(distinct pid) from pg_stat_activity where query like '%pg_notify%' and "
                   "pid <> pg_backend_pid() and datname = current_database()"),
      "1");
}

}  // namespace
}  // namespace settle::test
