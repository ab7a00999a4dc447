// settle doctor on PostgreSQL: each finding is provoked for real, and its fix makes it go away.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "doctor/doctor.hpp"
#include "settle/driver/broker.hpp"
#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/testing.hpp"
#include "support/doctor_fixture.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/recording_publisher.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;
using doctor::severity;

class postgres_doctor : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    own.emplace();
    db = postgres::open(own->conninfo(), {.env = {.log = &log}});
    migrate(*db);
    normal.transaction_age = 0s;
  }

  doctor::findings examine() { return doctor::examine(*db, normal); }
  bool found(const std::string& code) { return find(examine(), code) != nullptr; }

  doctor::finding expect(const std::string& code, severity level = severity::problem) {
    const auto all = examine();
    const auto* one = find(all, code);
    EXPECT_NE(one, nullptr) << code << " was not found, but:\n" << complaints(all);
    if (one == nullptr) return {};
    EXPECT_EQ(one->level, level) << one->seen;
    EXPECT_FALSE(one->why.empty());
    return *one;
  }

  // Runs the fix, and the finding has to go.
  void expect_cure(const doctor::finding& of) {
    run_fix(own->conninfo(), of.fix);
    EXPECT_TRUE(eventually([&] { return !found(of.code); })) << of.fix << "\ndid not help:\n"
                                                             << complaints(examine());
  }

  // Spoils something, which has to be found and cured.
  void expect_found_and_cured(const std::string& spoil, const std::string& code,
                              severity level = severity::problem) {
    EXPECT_FALSE(found(code)) << "before: " << spoil;
    own->run(spoil);
    expect_cure(expect(code, level));
  }

  void emit(const std::string& key, int count = 1) {
    auto tx = db->begin();
    for (int i = 0; i < count; ++i) publish(tx, event{.topic = "t", .type = "e", .key = key, .payload = "x"});
    tx.commit();
  }

  void relay_all(const relay_options& options = {}) {
    relay r(*db, destination, options);
    while (r.run_once()) {
    }
    r.leave();
  }

  quiet_log log;
  std::optional<scratch_database> own;
  std::unique_ptr<database> db;
  recording_publisher destination;
  doctor::limits normal;
};

TEST_F(postgres_doctor, finds_nothing_in_a_healthy_database) {
  emit("k", 10);
  relay_all();
  const auto all = doctor::examine(*db);
  EXPECT_TRUE(doctor::healthy(all));
  EXPECT_EQ(complaints(all), "");
  EXPECT_GE(all.size(), 15u) << "what was looked at is said";
}

TEST_F(postgres_doctor, names_a_session_that_is_idle_in_a_transaction) {
  pg_session sleeper(with(own->conninfo(), "application_name=sleeper"));
  sleeper.run("begin");
  sleeper.run("select pg_current_xact_id()");
  const auto one = expect("idle_in_transaction", severity::warning);
  EXPECT_NE(one.seen.find("sleeper"), std::string::npos) << one.seen;
  EXPECT_NE(one.seen.find("holds back vacuum"), std::string::npos) << one.seen;
  normal.transaction_age_problem = 0s;
  expect_cure(expect("idle_in_transaction"));
  EXPECT_ANY_THROW(sleeper.run("select 1"));
}

TEST_F(postgres_doctor, leaves_a_young_transaction_alone) {
  normal.transaction_age = 1h;
  pg_session busy(own->conninfo());
  busy.run("begin; select pg_current_xact_id()");
  EXPECT_FALSE(found("idle_in_transaction"));
}

TEST_F(postgres_doctor, names_a_running_transaction) {
  pg_session busy(with(own->conninfo(), "application_name=busy"));
  busy.run("begin isolation level repeatable read; select 1");
  std::jthread query([&] { EXPECT_ANY_THROW(busy.run("select pg_sleep(600)")); });
  const bool named = eventually([&] { return found("long_transaction"); });
  EXPECT_TRUE(named) << complaints(examine());
  if (named) expect_cure(expect("long_transaction", severity::warning));
  own->run(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'busy' and datname = "
      "current_database()");
}

TEST_F(postgres_doctor, names_a_prepared_transaction_and_what_it_holds) {
  pg_session session(own->conninfo());
  session.run("begin; select settle.publish('t', 'e', 'k', 'x'::text)");
  session.run("prepare transaction '" + own->name() + " it''s forgotten'");
  const auto one = expect("prepared_transaction");
  EXPECT_NE(one.seen.find("settle.outbox_1"), std::string::npos) << one.seen;
  EXPECT_NE(one.advice.find("commit prepared"), std::string::npos);
  expect_cure(one);
  EXPECT_EQ(own->run("select count(*) from pg_prepared_xacts where database = current_database()"), "0");
}

TEST_F(postgres_doctor, finds_unsafe_settings_of_databases_and_roles) {
  const auto database = "alter database " + own->name();
  expect_found_and_cured(database + " set synchronous_commit = off", "unsafe_synchronous_commit");
  expect_found_and_cured("alter role settle in database " + own->name() + " set synchronous_commit = false",
                         "unsafe_synchronous_commit");
  expect_found_and_cured(database + " set default_transaction_isolation = 'serializable'",
                         "unsafe_default_transaction_isolation", severity::warning);
  expect_found_and_cured(database + " set default_transaction_read_only = on",
                         "unsafe_default_transaction_read_only");
}

TEST_F(postgres_doctor, says_once_what_a_database_sets) {
  own->run("alter database " + own->name() + " set synchronous_commit = off");
  const auto later = postgres::open(own->conninfo(), {.env = {.log = &log}});
  EXPECT_EQ(std::ranges::count(doctor::examine(*later), "unsafe_synchronous_commit", &doctor::finding::code),
            1);
}

TEST_F(postgres_doctor, finds_an_unsafe_setting_in_the_connection_string) {
  const auto unsafe =
      postgres::open(with(own->conninfo(), "options='-c synchronous_commit=off'"), {.env = {.log = &log}});
  const auto all = doctor::examine(*unsafe);
  const auto* one = find(all, "unsafe_synchronous_commit");
  ASSERT_NE(one, nullptr) << complaints(all);
  EXPECT_TRUE(one->fix.empty()) << "no statement changes a connection string";
  EXPECT_NE(one->advice.find("connection string"), std::string::npos);
}

TEST_F(postgres_doctor, finds_missing_keys_and_odd_tables) {
  expect_found_and_cured("drop index settle.outbox_3_xid_seq_idx", "missing_key");
  expect_found_and_cured("drop index settle.outbox_7_seq_idx", "missing_key");
  expect_found_and_cured("alter table settle.shares drop constraint shares_pkey", "missing_key");
  expect_found_and_cured("alter table settle.processed_events drop constraint processed_events_pkey",
                         "missing_key");
  expect_found_and_cured("drop index settle.outbox_ticks_at", "missing_key");
  expect_found_and_cured("alter table settle.members set unlogged", "unlogged_table");
  expect_found_and_cured("alter table settle.shares set (autovacuum_enabled = off)", "autovacuum_disabled");
  expect_found_and_cured("alter sequence settle.outbox_seq cache 20", "sequence_changed");
}

TEST_F(postgres_doctor, finds_an_index_whose_build_failed) {
  own->run("drop index settle.outbox_2_seq_idx");
  own->run(
      "insert into settle.outbox (slot, seq, topic, event_type, payload) values (2, 5, 't', 'e', ''), "
      "(2, 5, 't', 'e', '')");
  EXPECT_ANY_THROW(own->run("create unique index concurrently on settle.outbox_2 (seq)"));
  const auto one = expect("missing_key");
  EXPECT_NE(one.seen.find("its build failed"), std::string::npos) << one.seen;
  own->run("truncate settle.outbox");
  expect_cure(one);
}

TEST_F(postgres_doctor, finds_a_table_that_is_gone) {
  own->run("drop table settle.settled_logs");
  EXPECT_NE(expect("missing_table").title.find("settled_logs"), std::string::npos);
}

TEST_F(postgres_doctor, finds_rights_that_nobody_needs) {
  expect_found_and_cured("grant insert, delete on settle.outbox to public", "loose_grant", severity::warning);
  expect_found_and_cured("grant usage on sequence settle.outbox_ring to settle_publisher", "loose_grant",
                         severity::warning);
  expect_found_and_cured("revoke usage on schema settle from settle_publisher", "publisher_role",
                         severity::warning);
  own->run("begin; set local role settle_publisher; select settle.publish('t', 'e', 'k', 'x'::text); commit");
}

TEST_F(postgres_doctor, finds_a_schema_that_is_missing_older_or_newer) {
  const scratch_database empty;
  const auto bare = postgres::open(empty.conninfo(), {.env = {.log = &log}});
  EXPECT_NE(find(doctor::examine(*bare), "schema_missing"), nullptr);
  own->run("create table kept as select * from settle.migrations");
  own->run("delete from settle.migrations where number = (select max(number) from settle.migrations)");
  EXPECT_EQ(expect("schema_behind").fix, "settle migrate");
  own->run("insert into settle.migrations select 1000, name, checksum, applied_at from kept limit 1");
  expect("schema_newer");
}

TEST_F(postgres_doctor, finds_an_outbox_of_another_history) {
  expect_found_and_cured("update settle.identity set timeline = timeline + 1", "cluster_changed");
  expect_found_and_cured("update settle.identity set system_identifier = null", "cluster_unknown",
                         severity::warning);
}

TEST_F(postgres_doctor, finds_events_that_no_relay_takes) {
  emit("k", 3);
  const auto one = expect("no_relay");
  EXPECT_TRUE(one.seen.starts_with("3 events not published")) << one.seen;
  relay r(*db, destination);
  r.run_once();  // alive, and has not done everything
  emit("k");
  EXPECT_FALSE(found("no_relay"));
  while (r.run_once()) {
  }
  r.leave();
  EXPECT_FALSE(found("no_relay")) << "nothing waits";
}

TEST_F(postgres_doctor, counts_only_what_is_left_of_a_window) {
  emit("k", 30);
  relay r(*db, destination, {.batch_max = 3});
  while (destination.seen.empty()) r.run_once();
  r.leave();
  const auto left = 30 - destination.seen.size();
  ASSERT_GT(left, 0u);
  EXPECT_TRUE(expect("no_relay").seen.starts_with(fmt::format("{} events not published", left)));
}

TEST_F(postgres_doctor, names_the_key_that_most_events_have) {
  normal.hot_events = 100;
  for (int i = 0; i < 40; ++i) emit(fmt::format("k{}", i));
  emit("whale", 160);
  const auto one = expect("hot_lane", severity::warning);
  EXPECT_NE(one.seen.find("'whale'"), std::string::npos) << one.seen;
  relay_all();
  EXPECT_FALSE(found("hot_lane"));
  for (int i = 0; i < 200; ++i) emit(fmt::format("k{}", i));
  EXPECT_FALSE(found("hot_lane")) << "spread over all shares";
}

TEST_F(postgres_doctor, finds_events_that_were_given_up_and_requeues_them) {
  testing::manual_time time;
  const auto later = postgres::open(own->conninfo(), {.env = {.time = &time, .log = &log}});
  emit("bad");
  destination.refuse = [](const message&) {
    return publish_result{publish_status::message_rejected, "too sour"};
  };
  relay r(*later, destination);
  ASSERT_TRUE(eventually([&] {
    r.run_once();
    time.advance(1h);
    return found("failed_events");
  }));
  r.leave();
  const auto one = expect("failed_events");
  EXPECT_NE(one.seen.find("too sour"), std::string::npos) << one.seen;
  expect_cure(one);
  destination.refuse = {};
  destination.seen.clear();
  time.advance(1h);
  relay again(*later, destination);
  while (again.run_once()) {
  }
  EXPECT_EQ(destination.seen.size(), 1u);
}

TEST_F(postgres_doctor, finds_shares_that_fail) {
  emit("k");
  destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "no route to host"};
  };
  relay r(*db, destination);
  r.run_once();
  ASSERT_TRUE(eventually([&] {
    r.run_once();
    return found("failing_share");
  }));
  EXPECT_NE(expect("failing_share").seen.find("no route to host"), std::string::npos);
}

TEST_F(postgres_doctor, finds_tables_of_relays_that_have_grown) {
  normal.log_bytes = 1'000'000;
  own->run(
      "insert into settle.outbox_progress (shares, tick, upto, position, at) select 0, 0, 0, 0, 0 "
      "from generate_series(1, 20000)");
  own->run("delete from settle.outbox_progress");
  const auto grown = expect("large_log", severity::warning);
  // Rows stay while any session of the cluster that is just connecting might see them; then it is repeated.
  EXPECT_TRUE(eventually([&] {
    run_fix(own->conninfo(), grown.fix);
    return !found(grown.code);
  })) << complaints(examine());
}

class postgres_doctor_ring : public postgres_doctor {
 protected:
  // One event in the first leaf, done; then the ring is turned until that leaf comes next.
  void turn_to_the_first_leaf() {
    for (int i = 0; i < 7; ++i) own->run("select nextval('settle.outbox_ring')");
    own->run("update settle.outbox_leaves set opened_at = 1");
    EXPECT_EQ(own->run("select pg_sequence_last_value('settle.outbox_ring'::regclass) & 7"), "0");
  }
  // What relays do now and then; here everything that is done is old enough.
  void turn() {
    own->run("select settle.turn_outbox_ring(extract(epoch from now())::bigint * 1000000 + 3600000000, 0)");
  }
};

TEST_F(postgres_doctor_ring, that_nobody_has_turned_yet_is_fine_while_the_next_leaf_is_empty) {
  own->run("update settle.outbox_leaves set opened_at = 1");
  EXPECT_FALSE(found("ring_cannot_advance"));
}

TEST_F(postgres_doctor_ring, that_turns_is_fine) {
  emit("k");
  relay_all();
  turn_to_the_first_leaf();
  turn();
  EXPECT_FALSE(found("ring_cannot_advance"));
}

TEST_F(postgres_doctor_ring, held_by_a_session_names_it) {
  emit("k");
  pg_session holder(with(own->conninfo(), "application_name=dumping"));
  holder.run("begin");
  holder.run("select count(*) from settle.outbox");
  relay_all();
  turn_to_the_first_leaf();
  turn();
  const auto one = expect("ring_cannot_advance");
  EXPECT_NE(one.seen.find("settle.outbox_1 is not empty"), std::string::npos) << one.seen;
  EXPECT_NE(one.seen.find("dumping"), std::string::npos) << one.seen;
  run_fix(own->conninfo(), one.fix);
  EXPECT_TRUE(eventually([&] {
    turn();
    return !found("ring_cannot_advance");
  }));
}

TEST_F(postgres_doctor_ring, held_by_a_prepared_transaction_names_it) {
  emit("k");
  own->run("begin; select settle.publish('t', 'e', 'k', 'x'::text); prepare transaction '" + own->name() +
           "'");
  relay_all();
  turn_to_the_first_leaf();
  turn();
  const auto one = expect("ring_cannot_advance");
  EXPECT_NE(one.fix.find("rollback prepared '" + own->name() + "'"), std::string::npos)
      << one.seen << one.fix;
  run_fix(own->conninfo(), one.fix);
  turn();
  EXPECT_FALSE(found("ring_cannot_advance"));
}

TEST_F(postgres_doctor_ring, held_by_events_that_wait_names_their_shares) {
  destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "down"};
  };
  emit("k");
  relay_all();
  turn_to_the_first_leaf();
  turn();
  own->run("update settle.outbox_ticks set at = n");
  const auto one = expect("ring_cannot_advance");
  EXPECT_NE(one.seen.find("have not published what is in it"), std::string::npos) << one.seen;
  EXPECT_TRUE(one.fix.empty());
}

// On a server of its own: these concern all of its databases.
class postgres_doctor_server : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    server.emplace();
    db = postgres::open(server->conninfo(), {.env = {.log = &log}});
    migrate(*db);
  }
  bool found(const std::string& code) { return find(doctor::examine(*db, normal), code) != nullptr; }
  void expect_found_and_cured(const std::string& spoil, const std::string& code) {
    run_fix(server->conninfo(), spoil);
    ASSERT_TRUE(eventually([&] { return found(code); })) << complaints(doctor::examine(*db, normal));
    const auto all = doctor::examine(*db, normal);
    run_fix(server->conninfo(), find(all, code)->fix);
    EXPECT_TRUE(eventually([&] { return !found(code); })) << complaints(doctor::examine(*db, normal));
  }
  std::optional<private_server> server;
  quiet_log log;
  std::unique_ptr<database> db;
  doctor::limits normal;
};

TEST_F(postgres_doctor_server, with_unsafe_settings_or_idle_slots_is_cured) {
  EXPECT_EQ(complaints(doctor::examine(*db)), "");
  for (const std::string name : {"fsync", "full_page_writes", "synchronous_commit", "autovacuum"})
    expect_found_and_cured("alter system set " + name + " = off;\nselect pg_reload_conf()", "unsafe_" + name);
  expect_found_and_cured("alter role all set synchronous_commit = off", "unsafe_synchronous_commit");
  expect_found_and_cured("select pg_create_physical_replication_slot('left_behind', true)", "idle_slot");
  expect_found_and_cured("select pg_create_logical_replication_slot('forgotten', 'pgoutput')", "idle_slot");
}

TEST_F(postgres_doctor_server, that_hides_things_from_a_role_is_said_to) {
  run_sql(server->conninfo(), "create role stranger login password 'x'");
  const auto stranger =
      postgres::open(with(server->conninfo(), "user=stranger password=x"), {.env = {.log = &log}});
  auto all = doctor::examine(*stranger);
  const auto* hidden = find(all, "sessions_hidden");
  ASSERT_NE(hidden, nullptr);
  EXPECT_NE(find(all, "not_checked"), nullptr) << "Settle's tables are closed to it";
  EXPECT_TRUE(doctor::healthy(all)) << "what could not be seen is no problem:\n" << complaints(all);
  run_fix(server->conninfo(), hidden->fix);
  all = doctor::examine(*stranger);
  EXPECT_EQ(find(all, "sessions_hidden"), nullptr);
}

TEST_F(postgres_doctor_server, with_a_standby_that_holds_back_vacuum_names_it) {
  server->command("up standby");
  const auto standby = server->standby_conninfo();
  const auto on_standby = postgres::open(standby, {.env = {.log = &log}});
  const auto all = doctor::examine(*on_standby);
  EXPECT_NE(find(all, "standby"), nullptr) << complaints(all);
  EXPECT_EQ(find(all, "not_checked"), nullptr) << complaints(all);

  normal.horizon_transactions = 3;
  normal.transaction_age = 0s;
  run_sql(standby, "alter system set hot_standby_feedback = on");
  run_sql(standby, "alter system set wal_receiver_status_interval = '1s'");
  run_sql(standby, "select pg_reload_conf()");
  pg_session reader(standby);
  reader.run("begin isolation level repeatable read");
  reader.run("select 1");
  ASSERT_TRUE(eventually([&] {
    run_sql(server->conninfo(), "select pg_current_xact_id()");
    return found("standby_horizon");
  })) << complaints(doctor::examine(*db, normal));
  run_fix(standby, find(doctor::examine(*db, normal), "standby_horizon")->fix);
  EXPECT_TRUE(eventually([&] { return !found("standby_horizon"); }));
}

}  // namespace
}  // namespace settle::test
