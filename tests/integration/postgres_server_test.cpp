// A server of the test's own: restarted, killed, replicated and promoted while it is in use.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "settle/claims.hpp"
#include "settle/driver/database.hpp"
#include "settle/error.hpp"
#include "settle/once.hpp"
#include "settle/postgres.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr query add_key{"test.add_key", "", "insert into keys (key) values ($1)"};

class postgres_server : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = postgres_missing(); !why.empty()) GTEST_SKIP() << why;
    server_.emplace();
    run_sql(server_->conninfo(), "create table keys (key bigint primary key)");
  }
  std::optional<private_server> server_;
  quiet_log log_;
};

// What several writers know of their keys.
struct ledger {
  std::mutex mutex;
  std::set<std::int64_t> committed, in_doubt;
  std::atomic<int> final_errors = 0;
};

void write_keys(database& db, ledger& into, int writer, const std::stop_token& stop) {
  for (std::int64_t key = writer * 1'000'000; !stop.stop_requested(); ++key) try {
      auto tx = db.begin();
      tx.execute(add_key, {key});
      tx.commit();
      const std::scoped_lock lock(into.mutex);
      into.committed.insert(key);
    } catch (const error& e) {
      if (!e.retryable()) {
        ADD_FAILURE() << e.what();
        ++into.final_errors;
      }
      if (e.outcome_unknown()) {
        const std::scoped_lock lock(into.mutex);
        into.in_doubt.insert(key);
      }
      std::this_thread::yield();
    }
}

std::size_t committed_in(ledger& of) {
  const std::scoped_lock lock(of.mutex);
  return of.committed.size();
}

void await_more(ledger& of) {
  const auto before = committed_in(of);
  const auto started = steady::now();
  while (committed_in(of) < before + 10 && steady::now() - started < 60s) std::this_thread::sleep_for(5ms);
  EXPECT_GE(committed_in(of), before + 10) << "no recovery";
}

// Proves O1: a restart or a crash of the server costs retryable errors and nothing else
TEST_F(postgres_server, that_is_restarted_and_killed_in_mid_run_loses_nothing_and_needs_no_restart_of_ours) {
  auto db = postgres::open(server_->conninfo(), {.env = {.log = &log_}});
  ledger keys;
  {
    std::vector<std::jthread> writers;
    for (int w = 0; w < 3; ++w)
      writers.emplace_back([&, w](const std::stop_token& stop) { write_keys(*db, keys, w, stop); });
    await_more(keys);
    server_->command("restart postgres");
    await_more(keys);
    server_->command("crash postgres");
    server_->command("start postgres");
    await_more(keys);
  }
  EXPECT_EQ(keys.final_errors, 0);
  std::set<std::int64_t> there;
  const auto found = db->read().execute("select key from keys");
  for (std::size_t i = 0; i < found.size(); ++i) there.insert(found[i][0].integer());
  for (const auto key : keys.committed) EXPECT_TRUE(there.contains(key)) << key << " is lost";
  for (const auto key : there)
    EXPECT_TRUE(keys.committed.contains(key) || keys.in_doubt.contains(key)) << key << " was called failed";
}

TEST_F(postgres_server, that_is_a_standby_is_read_and_not_written_until_it_is_promoted) {
  server_->command("up standby");
  auto primary = postgres::open(server_->conninfo());
  auto standby = postgres::open(server_->standby_conninfo(), {.connections_max = 1});
  const auto before = identity_of(standby->read());
  ASSERT_TRUE(before);
  EXPECT_TRUE(before->in_recovery);
  EXPECT_EQ(before->system_identifier, identity_of(primary->read())->system_identifier);
  EXPECT_EQ(code_of([&] { standby->read().execute("select count(*) from keys"); }), std::nullopt);
  try {
    standby->begin();
    ADD_FAILURE() << "a standby took a write transaction";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::store_unavailable);
    EXPECT_NE(std::string(e.what()).find("standby"), std::string::npos) << e.what();
  }
  server_->command("promote");
  auto tx = standby->begin();
  tx.execute(add_key, {1});
  EXPECT_EQ(identity_of(tx)->timeline, before->timeline + 1);
  EXPECT_FALSE(identity_of(tx)->in_recovery);
  tx.commit();
}

// What was cancelled while it waited is committed here, and would be lost with this server. Proves O1
TEST_F(postgres_server, that_is_told_not_to_wait_for_its_standby_leaves_the_commit_in_doubt) {
  run_sql(server_->conninfo(), "alter system set synchronous_standby_names = 'nobody'");
  run_sql(server_->conninfo(), "select pg_reload_conf()");
  constexpr auto timeout = 200ms;
  auto hasty = postgres::open(server_->conninfo(), {.statement_timeout = timeout});
  auto patient = postgres::open(server_->conninfo());
  std::int64_t key = 0;
  const auto in_doubt = [&](auto&& commit) {
    try {
      commit(++key);
    } catch (const error& e) {
      return e.outcome_unknown();
    }
    return false;
  };
  const auto commit = [&](std::int64_t added) {
    auto tx = hasty->begin();
    tx.execute(add_key, {added});
    tx.commit();
  };
  for (auto started = steady::now(); steady::now() - started < timeout;) {
    started = steady::now();
    in_doubt(commit);  // until the server has taken notice
  }
  EXPECT_TRUE(in_doubt(commit));
  EXPECT_TRUE(in_doubt([&](std::int64_t added) { hasty->begin().commit_with({add_key, {added}}); }));
  EXPECT_TRUE(in_doubt([&](std::int64_t added) {
    auto tx = hasty->begin();
    tx.post(add_key, {-added});
    tx.commit_with({add_key, {added}});
  }));
  EXPECT_TRUE(in_doubt([&](std::int64_t added) {
    std::stop_source stop;
    const std::jthread stopper([&] {
      const query waiting{"test.waiting", "", "select 1 from pg_stat_activity where wait_event = 'SyncRep'"};
      while (patient->read().execute(waiting).empty()) std::this_thread::sleep_for(1ms);
      stop.request_stop();
    });
    patient->begin(stop.get_token()).commit_with({add_key, {added}});
  }));
  EXPECT_EQ(patient->read().execute("select count(*) from keys where key > 0")[0][0].integer(), key);
}

// Proves I4: a record that only this server has would be found by a look, and be gone after a failover
TEST_F(postgres_server, that_is_told_not_to_wait_for_its_standby_leaves_requests_and_claims_in_doubt) {
  auto patient = postgres::open(server_->conninfo());
  migrate(*patient);
  run_sql(server_->conninfo(), "alter system set synchronous_standby_names = 'nobody'");
  run_sql(server_->conninfo(), "select pg_reload_conf()");
  auto hasty = postgres::open(server_->conninfo(), {.statement_timeout = 200ms});
  const auto keys = open_claims(*hasty);
  const auto ask = [&] { once(*hasty, {"shop", "ann", "k"}, [](transaction&) { return answer{}; }); };
  const auto claim = [&] { keys->claim({.who = {"shop", "ann", "k"}}); };
  while (!leaves_in_doubt(claim)) {  // until the server has taken notice
  }
  EXPECT_TRUE(leaves_in_doubt(ask));
  EXPECT_TRUE(leaves_in_doubt([&] { keys->claim({.who = {"shop", "ann", "l"}}); }));
}

// What it is for is seen in tests/storm/two_hosts: a host that is cut off holds up nobody for longer.
TEST(postgres_session, asks_the_server_to_notice_soon_that_its_client_is_gone) {
  if (const auto why = postgres_missing(); !why.empty()) GTEST_SKIP() << why;
  const auto over_tcp = with(postgres_conninfo(), "host=127.0.0.1");
  const auto setting = [](database& db, const char* name) {
    return db.read().execute("select current_setting($1)", {name})[0][0].text();
  };
  const auto db = postgres::open(over_tcp);
  EXPECT_EQ(setting(*db, "tcp_keepalives_idle"), "10");
  EXPECT_EQ(setting(*db, "tcp_keepalives_interval"), "5");
  EXPECT_EQ(setting(*db, "tcp_keepalives_count"), "2");
  EXPECT_EQ(setting(*db, "tcp_user_timeout"), "20000");
  const auto told =
      postgres::open(with(over_tcp, "options='-c tcp_user_timeout=7000 -c tcp_keepalives_idle=60'"));
  EXPECT_EQ(setting(*told, "tcp_user_timeout"), "7000") << "a server that notices sooner is left alone";
  EXPECT_EQ(setting(*told, "tcp_keepalives_idle"), "10");
}

}  // namespace
}  // namespace settle::test
