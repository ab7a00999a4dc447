// Handlers of one batch share a transaction that none of them may end: every way to try it, and what is left.
#include <gtest/gtest.h>

#include <optional>

#include "base/hash.hpp"
#include "settle/consume.hpp"
#include "settle/error.hpp"
#include "settle/postgres.hpp"
#include "settle/testing.hpp"
#include "support/expect_error.hpp"
#include "support/list_broker.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;
using deed = std::function<void(transaction&)>;

// A batch of three messages. The handler of the second one does something that it should not.
class postgres_handler_guard : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    own.emplace();
    own->run("create table shipped (what text not null)");
    open();
    migrate(*db);
  }

  void open(const std::string& more = "") {
    db.reset();
    db = postgres::open(with(own->conninfo(), more), {.env = {.time = &time, .log = &log}});
  }

  // Everything as it was, and three messages to come.
  consumer& begin_again(const deed& second) {
    own->run("delete from shipped");
    own->forget_events();
    broken = true;
    worker.reset();
    broker = {};
    for (const std::string id : {"1", "2", "3"}) {
      auto& m = broker.messages.emplace_back();
      m.id = m.key = m.payload = id;
      m.topic = "things";
      m.type = "thing.done";
    }
    worker = std::make_unique<consumer>(*db, broker, consumer_options{.name = "tester"});
    worker->on("things", "thing.done", [this, second](const message& m, transaction& tx) {
      tx.execute("insert into shipped values ($1)", {m.id});
      if (m.id == "2" && broken) second(tx);
    });
    return *worker;
  }

  void drain() const {
    while (worker->run_once()) {
    }
  }
  // Once the cause is gone, everything is there once.
  void expect_recovery(const std::string& how) {
    broken = false;
    time.advance(1min);
    drain();
    expect_left("1 2 3", how);
    EXPECT_EQ(own->run("select count(*) from settle.parked_messages"), "0") << how;
    EXPECT_EQ(broker.acknowledged.size(), 3u) << how;
  }
  // The effects that are there, which are also the claims.
  void expect_left(const std::string& ids, const std::string& how) const {
    EXPECT_EQ(own->run("select string_agg(what, ' ' order by what) from shipped"), ids) << how;
    EXPECT_EQ(
        own->run("select string_agg(message_id, ' ' order by message_id) from settle.processed_events p "
                 "where not exists (select from settle.parked_messages w where w.message_id = p.message_id)"),
        ids)
        << how;
  }

  // The second message fails alone, however often it is tried; its neighbours are applied.
  void expect_caught(const std::string& how, const deed& bad) {
    auto& c = begin_again(bad);
    EXPECT_EQ(code_of([&] { drain(); }), std::nullopt) << how;
    expect_left("1 3", how);
    EXPECT_EQ(c.counts().failures, 1) << how;
    EXPECT_EQ(own->run("select count(*) from settle.parked_messages"), "1") << how;
    expect_recovery(how);
  }
  // The statement does no harm.
  void expect_harmless(const std::string& how, const deed& done) {
    auto& c = begin_again(done);
    EXPECT_EQ(code_of([&] { drain(); }), std::nullopt) << how;
    expect_left("1 2 3", how);
    EXPECT_EQ(c.counts().failures, 0) << how;
  }
  // The store is to blame: the consumer pauses, nobody is charged, and nothing is left of the second message.
  void expect_trouble_of_the_store(const std::string& how, const deed& bad) {
    auto& c = begin_again(bad);
    EXPECT_EQ(code_of([&] { drain(); }), std::nullopt) << how;
    expect_left("1", how);
    EXPECT_EQ(c.counts().failures, 0) << how;
    EXPECT_EQ(c.counts().pauses, 1) << how;
    expect_recovery(how);
  }

  static deed say(const std::string& sql) {
    return [sql](transaction& tx) {
      tx.execute(sql);
      tx.execute("insert into shipped values ('2, and alone')");
    };
  }
  // Goes on as if nothing had happened.
  static deed say_and_ignore(const std::string& sql) {
    return [sql](transaction& tx) { EXPECT_NE(code_of([&] { tx.execute(sql); }), std::nullopt) << sql; };
  }

  testing::manual_time time;
  quiet_log log;
  std::optional<scratch_database> own;
  std::unique_ptr<database> db;
  list_broker broker;
  std::unique_ptr<consumer> worker;
  bool broken = true;
};

const std::string endings[] = {"commit",
                               "COMMIT WORK",
                               "commit and chain",
                               "end",
                               "end transaction and chain",
                               "rollback",
                               "rollback and chain",
                               "abort",
                               "abort work and chain",
                               "begin",
                               "begin isolation level serializable",
                               "start transaction",
                               "prepare transaction 'kept'",
                               "commit prepared 'kept'",
                               "rollback prepared 'kept'"};

// Proves C1
TEST_F(postgres_handler_guard, a_statement_that_begins_or_ends_a_transaction_is_refused) {
  for (const auto& sql : endings) expect_caught(sql, say(sql));
}

// Proves C1
TEST_F(postgres_handler_guard, a_refused_statement_does_nothing_even_if_the_handler_ignores_the_error) {
  for (const auto& sql : endings) expect_harmless(sql, say_and_ignore(sql));
}

// Proves C1
TEST_F(postgres_handler_guard, comments_spaces_and_empty_statements_hide_nothing) {
  for (const std::string sql :
       {" \t\r\n\f\vcommit", "-- now\ncommit", "-- now\rrollback", "/* a /* nested */ one */rollback",
        ";;commit", "/**/;--\n;end;", "cOmMiT/**/and chain", "rollback -- to x", "rollback/* to x */"})
    expect_caught(sql, say(sql));
}

// Proves C1
TEST_F(postgres_handler_guard, there_is_no_other_call_that_lets_one_through) {
  static constexpr query ending{"guard.ending", "", "commit"};
  static constexpr query rolling_back{"guard.rolling_back", "", "/* */ rollback"};
  const std::vector<parameters> once(1);
  for (const auto& text : {ending, rolling_back}) {
    const std::string sql(text.postgres);
    expect_caught("execute " + sql, [&](transaction& tx) { tx.execute(text); });
    expect_caught("execute a statement " + sql, [&](transaction& tx) { tx.execute(statement{text, {}}); });
    expect_caught("post " + sql, [&](transaction& tx) { tx.post(text); });
    expect_caught("execute_many " + sql, [&](transaction& tx) { tx.execute_many(text, once); });
    const repeated all[] = {{{"guard.one", "", "select 1"}, once}, {text, once}};
    expect_caught("execute_all " + sql, [&](transaction& tx) { tx.execute_all(all); });
  }
}

// The server takes one statement at a time. Proves C1
TEST_F(postgres_handler_guard, several_statements_in_one_text_are_refused) {
  for (const std::string sql : {"select 1; commit", "insert into shipped values ('x'); rollback; select 1",
                                "select ';'; commit; begin", "select 1;;end"})
    expect_caught(sql, say(sql));
}

// Proves C1
TEST_F(postgres_handler_guard, procedures_and_blocks_cannot_end_it) {
  for (const std::string verb : {"commit", "rollback", "commit and chain"}) {
    own->run("create or replace procedure ending() language plpgsql as $$ begin " + verb + "; end $$");
    expect_caught("call: " + verb, say("call ending()"));
    expect_caught("do: " + verb, say("do $$ begin " + verb + "; end $$"));
    expect_caught("nested: " + verb, say("do $$ begin call ending(); end $$"));
    expect_caught("dynamic: " + verb, say("do $$ begin execute '" + verb + "'; end $$"));
  }
  own->run("create function as_sql() returns void language sql as 'commit'");
  expect_caught("function", say("select as_sql()"));
}

// The driver's own COMMIT and ROLLBACK must not lie there as prepared statements: EXECUTE runs whatever has a
// name, and no wrapper sees what that is. Proves C1
TEST_F(postgres_handler_guard, the_drivers_own_commit_cannot_be_executed_by_name) {
  begin_again([](transaction&) { throw std::runtime_error("roll back, too"); });
  drain();  // the session has committed and rolled back
  std::string verbs;
  const auto named = [&](transaction& tx) {
    const auto found = tx.execute(
        "select string_agg(name, ' ') from pg_prepared_statements where statement ~* '^ *(commit|rollback)'");
    verbs = found[0][0].is_null() ? "" : found[0][0].text();
  };
  expect_harmless("prepared statements", named);
  EXPECT_EQ(verbs, "");
  for (const std::string verb : {"commit", "rollback"}) {
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(stable_hash(verb)));
    const auto sql = "execute settle_" + verb + "_" + hash;
    expect_caught(sql, say(sql));
    expect_caught("in a block: " + sql, say("do $$ begin execute '" + sql + "'; end $$"));
  }
  expect_caught("prepare", say("prepare mine as commit"));
}

// Proves C1
TEST_F(postgres_handler_guard, a_savepoint_is_the_handlers_own_business) {
  expect_harmless("rolled back to", [](transaction& tx) {
    tx.execute("savepoint mine");
    tx.execute("insert into shipped values ('undone')");
    tx.execute("rollback to mine");
    tx.execute("release mine");
  });
  expect_harmless("after an error", [](transaction& tx) {
    tx.execute("savepoint mine");
    EXPECT_EQ(code_of([&] { tx.execute("insert into shipped values (null)"); }), errc::constraint_violated);
    tx.execute("rollback to savepoint mine");
  });
  expect_caught("of nobody", say("rollback to savepoint nobodys"));
  expect_caught("release of nobody's", say("release nobodys"));
}

// What the first handler has done would be undone while its claim stays. Proves C1
TEST_F(postgres_handler_guard, a_handler_cannot_roll_back_to_the_savepoint_of_an_earlier_one) {
  for (const std::string back : {"rollback to s", "ROLLBACK WORK TO SAVEPOINT \"s\"", "release s",
                                 "/* */ rollback transaction to S;"}) {
    begin_again({});
    worker = std::make_unique<consumer>(*db, broker, consumer_options{.name = "tester"});
    worker->on("things", "thing.done", [&](const message& m, transaction& tx) {
      if (m.id == "1") tx.execute("savepoint s");
      tx.execute("insert into shipped values ($1)", {m.id});
      if (m.id == "2" && broken) tx.execute(back);
    });
    drain();
    expect_left("1 3", back);
    EXPECT_EQ(worker->counts().failures, 1) << back;
    expect_recovery(back);
  }
}

// One that the server never set, though the handler has said it, is not its own. Proves C1
TEST_F(postgres_handler_guard, a_savepoint_that_was_never_set_does_not_lead_to_an_earlier_one) {
  static constexpr query failing{"guard.failing", "", "insert into shipped values (null)"};
  static constexpr query saying{"guard.saying", "", "savepoint s"};
  const deed unset[] = {[](transaction& tx) { tx.execute("savepoint s", {1}); },
                        [](transaction& tx) { tx.execute("savepoint s; select 1"); },
                        [](transaction& tx) {
                          tx.post(failing);
                          tx.execute("savepoint s");
                        },
                        [](transaction& tx) { tx.execute_all(std::vector<repeated>{{saying, {}}}); }};
  for (const auto& say_so : unset) {
    begin_again({});
    worker = std::make_unique<consumer>(*db, broker, consumer_options{.name = "tester"});
    worker->on("things", "thing.done", [&](const message& m, transaction& tx) {
      if (m.id == "1") tx.execute("savepoint s");
      tx.execute("insert into shipped values ($1)", {m.id});
      if (m.id != "2" || !broken) return;
      code_of([&] { say_so(tx); });
      tx.execute("rollback to s");
    });
    drain();
    expect_left("1 3", "never set");
    expect_recovery("never set");
  }
}

// PostgreSQL takes nothing more after an error, and answers COMMIT with ROLLBACK. Proves C1
TEST_F(postgres_handler_guard, an_error_that_the_handler_ignores_fails_its_message_alone) {
  for (const std::string sql : {"insert into shipped values (null)", "select 1/0", "nonsense",
                                "select 1; commit", "select * from nowhere", "do $$ begin commit; end $$"})
    expect_caught(sql, say_and_ignore(sql));
  static constexpr query failing{"guard.failing", "", "insert into shipped values (null)"};
  expect_caught("posted", [](transaction& tx) { tx.post(failing); });
  expect_caught("posted, then ignored", [](transaction& tx) {
    tx.post(failing);
    EXPECT_NE(code_of([&] { tx.execute("select 1"); }), std::nullopt);
  });
}

// COMMIT itself can refuse. Proves C1
TEST_F(postgres_handler_guard, a_constraint_that_refuses_at_the_commit_fails_its_message_alone) {
  own->run("create table parents (id bigint primary key)");
  own->run("create table children (parent bigint references parents deferrable initially deferred)");
  expect_caught("deferred", say("insert into children values (1)"));
  expect_caught("immediately", [](transaction& tx) {
    tx.execute("insert into children values (1)");
    tx.execute("set constraints all immediate");
  });
  expect_harmless("honest use", [](transaction& tx) {
    tx.execute("set constraints all immediate");
    tx.execute("set constraints all deferred");
  });
}

// Proves C1
TEST_F(postgres_handler_guard, other_settings_and_statements_of_a_session_end_nothing) {
  for (const std::string sql : {"set session_replication_role = replica", "set local lock_timeout = '1s'",
                                "notify anybody", "listen anybody", "discard plans", "deallocate all",
                                "reset all", "set session characteristics as transaction read only"}) {
    open();
    expect_harmless(sql, [&](transaction& tx) { tx.execute(sql); });
  }
  for (const std::string sql :
       {"discard all", "vacuum shipped", "set transaction isolation level serializable",
        "set transaction read only", "set local transaction read only", "set transaction_read_only = on",
        "set transaction snapshot '1'"}) {
    open();
    expect_caught(sql, say(sql));
  }
}

// Proves C1
TEST_F(postgres_handler_guard, a_handler_cannot_make_the_commit_less_durable) {
  own->run("create table seen (setting text)");
  own->run(
      "create function look() returns trigger language plpgsql as $$ begin "
      "insert into seen values (current_setting('synchronous_commit')); return null; end $$");
  own->run(
      "create constraint trigger at_commit after insert on shipped deferrable initially deferred "
      "for each row execute function look()");
  for (const std::string sql : {"set synchronous_commit = off", "set local synchronous_commit = off",
                                "select set_config('synchronous_commit', 'off', false)",
                                "select set_config('synchronous_commit', 'local', true)"}) {
    expect_harmless(sql, [&](transaction& tx) { tx.execute(sql); });
    EXPECT_EQ(own->run("select string_agg(distinct setting, ' ') from seen"), "on") << sql;
  }
}

// A pipeline has no place for the data. Proves C1
TEST_F(postgres_handler_guard, copy_is_refused) {
  for (const std::string sql : {"copy shipped from stdin", "copy shipped to stdout",
                                "copy (select 1) to stdout", "/* */ COPY shipped (what) FROM STDIN"}) {
    expect_caught(sql, say(sql));
    expect_caught("ignored: " + sql, say_and_ignore(sql));
  }
}

// Proves C1
TEST_F(postgres_handler_guard, a_handler_that_ends_its_own_session_leaves_nothing_and_is_charged_nothing) {
  expect_trouble_of_the_store("terminate", say("select pg_terminate_backend(pg_backend_pid())"));
  expect_trouble_of_the_store("ignored", say_and_ignore("select pg_terminate_backend(pg_backend_pid())"));
  expect_trouble_of_the_store("from outside", [&](transaction& tx) {
    const auto pid = tx.execute("select pg_backend_pid()")[0][0].integer();
    own->run("select pg_terminate_backend(" + std::to_string(pid) + ", 5000)");
  });
}

}  // namespace
}  // namespace settle::test
