// The daemon where the service's database is a PostgreSQL: the real program on a real server, which may go
// away.
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <filesystem>
#include <optional>
#include <regex>

#include "settle/postgres.hpp"
#include "settle/relay.hpp"
#include "support/daemon_process.hpp"
#include "support/postgres_fixture.hpp"
#include "support/recording_publisher.hpp"
#include "support/temp_dir.hpp"

namespace settle::daemon {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using test::answer;
using test::eventually;
using test::get;
using test::outcome;
using test::program;
using test::write_file;

// Each test says which server it is about.
class postgres_daemon : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }

  std::unique_ptr<program> start(const std::string& conninfo, std::vector<std::string> more = {}) {
    if (std::ranges::find(more, "--data") == more.end())
      more.insert(more.begin(), {"--data", dir.file("data")});
    more.insert(more.begin(), {"--listen", "127.0.0.1:0"});
    return std::make_unique<program>(SETTLED, more, dir.file("settled" + std::to_string(++started_)),
                                     test::surroundings{.variables = {"SETTLE_DATABASE=" + conninfo}});
  }

  std::unique_ptr<program> start_ready(const std::string& conninfo, std::vector<std::string> more = {}) {
    auto running = start(conninfo, std::move(more));
    EXPECT_TRUE(running->logs(" info ready ")) << running->log();
    return running;
  }

  outcome run(std::vector<std::string> arguments) {
    return program(SETTLED, std::move(arguments), dir.file("run"), {}).end();
  }

  // The reasons at /readyz, once it says 503 and they have this text.
  static bool is_not_ready(const program& running, const std::string& because) {
    answer last;
    const bool so = eventually([&] {
      last = get(running.port(), "/readyz");
      return last.status == 503 && last.body.find(because) != std::string::npos;
    });
    EXPECT_TRUE(so) << last.status << " " << last.body;
    return so;
  }
  static bool is_ready(const program& running) {
    return eventually([&] { return get(running.port(), "/readyz").status == 200; });
  }

  // A page of /metrics that has all these lines.
  static bool shows(const program& running, const std::vector<std::string>& lines) {
    std::string page;
    const bool so = eventually([&] {
      page = get(running.port(), "/metrics").body;
      return std::ranges::all_of(
          lines, [&](const auto& line) { return page.find("\n" + line + "\n") != std::string::npos; });
    });
    EXPECT_TRUE(so) << page;
    return so;
  }

  static void expect_no_password(const std::string& text) {
    EXPECT_EQ(text.find(test::word_of(test::postgres_conninfo(), "password")), std::string::npos) << text;
  }

  test::temp_dir dir;

 private:
  int started_ = 0;
};

constexpr auto one_event = "select settle.publish('orders', 'order.placed', '42', '{}'::text)";

// Proves O1, D7
TEST_F(postgres_daemon, relays_what_others_commit_and_counts_it) {
  const test::scratch_database own;
  const auto running = start_ready(own.conninfo());
  for (int i = 0; i < 3; ++i) own.run(one_event);
  EXPECT_TRUE(shows(*running,
                    {"settle_relay_published_total 3", "settle_outbox_pending_events 0",
                     "settle_outbox_oldest_pending_age_seconds 0", "settle_relays_alive 1",
                     "settle_broker_messages{topic=\"orders\"} 3", "settle_store_up{store=\"service\"} 1"}));
  EXPECT_FALSE(fs::exists(dir.file("data/settle.db")));
  const auto done = running->end(SIGTERM);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.err.find("dbname=" + own.name()), std::string::npos) << done.err;
  expect_no_password(done.err);
  EXPECT_EQ(own.run("select count(*) from settle.members"), "0") << "it gave its lease back";
}

// Proves D7
TEST_F(postgres_daemon, shows_how_many_events_wait_and_for_how_long) {
  const test::scratch_database own;
  const auto db = postgres::open(own.conninfo());
  migrate(*db);
  for (int i = 0; i < 25; ++i) own.run(one_event);
  own.run("select settle.publish('orders', 'order.placed', '43', '{}'::text)");
  {
    test::recording_publisher destination;
    relay half_way(*db, destination, {.batch_max = 10});
    while (destination.seen.size() < 10) half_way.run_once();
    half_way.leave();
  }
  auto blocking = db->begin();
  blocking.execute("lock table settle.outbox_progress in exclusive mode");  // no relay can note anything
  const auto running = start(own.conninfo());
  EXPECT_TRUE(shows(*running, {"settle_outbox_pending_events 16"}));
  const auto page = get(running->port(), "/metrics").body;
  std::smatch found;
  ASSERT_TRUE(
      std::regex_search(page, found, std::regex("\nsettle_outbox_oldest_pending_age_seconds (.*)\n")));
  EXPECT_GT(std::stod(found[1]), 0.0);
  blocking.rollback();
  EXPECT_TRUE(shows(*running, {"settle_outbox_pending_events 0"}));
}

// A type that no broker of ours takes, as only a row written by hand can have it, is rejected. Proves O3
TEST_F(postgres_daemon, gives_a_rejected_event_up_and_holds_its_key_as_it_is_told) {
  for (const bool hold : {false, true}) {
    const test::scratch_database own;
    const auto running =
        start_ready(own.conninfo(), {"--data", dir.file(hold ? "hold" : "go_on"), "--relay-attempts-max", "1",
                                     "--relay-hold-failed-keys", hold ? "true" : "false"});
    own.run(
        "insert into settle.outbox (topic, event_type, aggregate_id, payload) "
        "values ('orders', E'bad\ntype', '42', '{}')");
    EXPECT_TRUE(shows(*running, {R"(settle_outbox_failed_total{topic="orders"} 1)"}));
    own.run(one_event);
    own.run("select settle.publish('orders', 'order.placed', '43', '{}'::text)");
    const auto out =
        hold ? "settle_broker_messages{topic=\"orders\"} 1" : "settle_broker_messages{topic=\"orders\"} 2";
    EXPECT_TRUE(shows(*running, {out}));
    EXPECT_EQ(own.run("select status from settle.outbox_events where event_type <> 'order.placed'"),
              "FAILED");
    EXPECT_EQ(running->end(SIGTERM).code, 0);
    EXPECT_EQ(own.run("select count(*) from settle.outbox_events where status = 'PENDING'"),
              hold ? "1" : "0");
  }
}

// Proves O1
TEST_F(postgres_daemon, is_not_ready_while_its_server_is_away_and_goes_on_by_itself) {
  const test::private_server server;
  const auto running = start_ready(server.conninfo());
  server.command("stop postgres");
  EXPECT_TRUE(is_not_ready(*running, "database postgres at "));
  EXPECT_EQ(get(running->port(), "/healthz").status, 200);
  EXPECT_TRUE(
      shows(*running, {"settle_store_up{store=\"service\"} 0", "settle_store_up{store=\"broker\"} 1"}));
  server.command("start postgres");
  EXPECT_TRUE(is_ready(*running));
  test::run_sql(server.conninfo(), one_event);
  EXPECT_TRUE(shows(*running, {"settle_broker_messages{topic=\"orders\"} 1"}));
  server.command("stop postgres");
  const auto done = running->end(SIGTERM);
  EXPECT_EQ(done.code, 0) << done.err;
  expect_no_password(done.err);
}

TEST_F(postgres_daemon, starts_while_its_server_is_away) {
  const test::private_server server;
  const auto conninfo = server.conninfo();
  server.command("stop postgres");
  const auto running = start(conninfo);
  EXPECT_TRUE(running->logs(" warning database_away ")) << running->log();
  EXPECT_TRUE(is_not_ready(*running, "the relay "));
  EXPECT_EQ(get(running->port(), "/healthz").status, 200);
  server.command("start postgres");
  EXPECT_TRUE(is_ready(*running)) << running->log();
  EXPECT_TRUE(running->logs(" info migrated ")) << running->log();
  test::run_sql(conninfo, one_event);
  EXPECT_TRUE(shows(*running, {"settle_relay_published_total 1"}));
}

TEST_F(postgres_daemon, tells_the_log_of_an_outage_once_and_then_less_and_less) {
  const test::private_server server;
  const auto running = start_ready(server.conninfo());
  server.command("stop postgres");
  EXPECT_TRUE(eventually([&] {
    const auto page = get(running->port(), "/metrics").body;
    get(running->port(), "/readyz");
    const std::string count = "settle_service_failures_total{work=\"relay\"} ";
    const auto at = page.find(count);
    return at != std::string::npos && std::stoi(page.substr(at + count.size())) >= 10;
  }));
  const auto log = running->log();
  const auto lines = [&](const std::string& text) {
    int count = 0;
    for (auto at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++count;
    return count;
  };
  for (const auto* line : {" service_failed work=relay ", " scrape_failed ", " readiness_failed "}) {
    EXPECT_GE(lines(line), 1) << log;
    EXPECT_LE(lines(line), 4) << log;
  }
  server.command("start postgres");
  EXPECT_TRUE(running->logs(" info service_resumed work=relay ")) << running->log();
}

TEST_F(postgres_daemon, shows_no_statement_of_its_own_to_whoever_asks_whether_it_is_ready) {
  const test::scratch_database own;
  const auto running = start_ready(own.conninfo());
  own.run("alter table settle.migrations rename column checksum to elsewhere");
  own.run("alter table settle.members rename to elsewhere_too");
  EXPECT_TRUE(is_not_ready(*running, own.name() + " at "));
  EXPECT_TRUE(is_not_ready(*running, "the relay fails: "));
  const auto page = get(running->port(), "/readyz").body;
  for (const auto* internal : {"select", "update", "insert", "SQLSTATE", "settle.members"})
    EXPECT_EQ(page.find(internal), std::string::npos) << page;
  EXPECT_TRUE(running->logs(" warning readiness_failed ")) << running->log();
}

// Proves O1: the relay's leases and wake-ups need sessions
TEST_F(postgres_daemon, does_not_start_behind_a_pooler_that_hands_sessions_around) {
  if (const auto missing = test::pgbouncer_missing(); !missing.empty()) GTEST_SKIP() << missing;
  const test::scratch_database own;
  const auto refused = start(test::with(test::pgbouncer_conninfo(), "dbname=" + own.name()))->end();
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_NE(refused.err.find("settled: invalid_argument: --database names a pooler in transaction mode"),
            std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("pool_mode = session"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(dir.file("data"))) << "and leaves nothing behind";
  EXPECT_EQ(own.run("select count(*) from pg_namespace where nspname = 'settle'"), "0");
}

// Proves I2: readiness is true also of what changes while it runs
TEST_F(postgres_daemon, is_not_ready_behind_such_a_pooler_if_one_is_put_in_between_later) {
  if (const auto missing = test::pgbouncer_missing(); !missing.empty()) GTEST_SKIP() << missing;
  const test::scratch_database own;
  const auto service_at = [&](const std::string& conninfo) {
    std::string lines = "[orders]\n";
    for (const auto* word : {"host", "port", "user", "password"})
      lines += std::string(word) + "=" + test::word_of(conninfo, word) + "\n";
    write_file(dir.file("services"), lines + "dbname=" + own.name() + "\n");
  };
  service_at(test::postgres_conninfo());
  const program running(
      SETTLED, {"--data", dir.file("data"), "--listen", "127.0.0.1:0", "--http-timeout", "2s"},
      dir.file("switched"),
      {.variables = {"SETTLE_DATABASE=service=orders", "PGSERVICEFILE=" + dir.file("services")}});
  EXPECT_TRUE(running.logs(" info ready ")) << running.log();
  EXPECT_TRUE(is_ready(running));
  service_at(test::pgbouncer_conninfo());
  own.run(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> "
      "pg_backend_pid()");
  EXPECT_TRUE(is_not_ready(running, "pooler in transaction mode"));
  for (int n = 0; n < 40; ++n) {
    const auto got = test::post(running.port(), "/v1/keys/claim", "",
                                R"({"service":"shop","caller":"ann","key":"k-)" + std::to_string(n) + "\"}");
    EXPECT_TRUE(got.status == 200 || got.status == 503) << got.status << got.body;
  }
  service_at(test::postgres_conninfo());
  EXPECT_TRUE(is_ready(running)) << get(running.port(), "/readyz").body << running.log();
}

// Proves O12
TEST_F(postgres_daemon, is_not_ready_on_another_cluster_until_the_outbox_is_rebased) {
  const test::scratch_database own;
  const auto running = start_ready(own.conninfo());
  own.run("update settle.identity set timeline = timeline + 1");
  EXPECT_TRUE(is_not_ready(*running, "cluster_changed"));
  own.run(one_event);
  const auto rebased =
      program(SETTLE_CLI,
              {"--data", dir.file("data"), "--database", own.conninfo(), "outbox", "rebase", "--yes"},
              dir.file("cli"), {})
          .end();
  EXPECT_NE(rebased.out.find("1 event is to be published"), std::string::npos) << rebased.err;
  EXPECT_TRUE(is_ready(*running));
  EXPECT_TRUE(shows(*running, {"settle_relay_published_total 1"}));
}

TEST_F(postgres_daemon, leaves_the_schema_to_others_if_told_so) {
  const test::scratch_database own;
  write_file(dir.file("settled.toml"), "migrate = false\n");
  const auto refused = start(own.conninfo(), {"--config", dir.file("settled.toml")})->end();
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("schema_missing"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("settle migrate --print"), std::string::npos) << refused.err;
  EXPECT_EQ(own.run("select count(*) from pg_namespace where nspname = 'settle'"), "0");
  own.run(
      program(SETTLE_CLI, {"migrate", "--print", "--dialect", "postgres"}, dir.file("cli"), {}).end().out);
  const auto running = start_ready(own.conninfo(), {"--migrate", "false"});
  own.run(one_event);
  EXPECT_TRUE(shows(*running, {"settle_relay_published_total 1"}));
}

TEST_F(postgres_daemon, does_not_start_on_a_database_of_a_newer_version) {
  const test::scratch_database own;
  migrate(*postgres::open(own.conninfo()));
  own.run("insert into settle.migrations values (999, 'future', 'x', 0)");
  const auto refused = start(own.conninfo())->end();
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("schema_newer"), std::string::npos) << refused.err;
}

TEST_F(postgres_daemon, never_shows_the_password_that_it_was_given) {
  const auto shown =
      run({"--print-config", "--database", "postgresql://me:hunter2@db.internal/orders?sslmode=require"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.out.find("database = \"user=me dbname=orders host=db.internal sslmode=require\""),
            std::string::npos)
      << shown.out;
  EXPECT_EQ(shown.out.find("hunter2"), std::string::npos);
  for (const auto* wrong : {"mysql://me:hunter2@db/orders", "host=db hunter2"}) {
    const auto refused = run({"--database", wrong});
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find("--database: database must be a file, postgresql://"), std::string::npos)
        << refused.err;
    EXPECT_EQ(refused.err.find("hunter2"), std::string::npos) << refused.err;
  }
  write_file(dir.file("settled.toml"), shown.out);
  EXPECT_EQ(run({"--config", dir.file("settled.toml"), "--print-config"}).code, 0)
      << "what it prints is a file that it reads";
}

// Proves O1
TEST_F(postgres_daemon, is_started_by_the_command_line_with_the_database_that_it_was_given) {
  const test::scratch_database own;
  const auto path = "PATH=" + fs::path(SETTLED).parent_path().string();
  const program running(
      SETTLE_CLI,
      {"--data", dir.file("data"), "--database", own.conninfo(), "serve", "--listen", "127.0.0.1:0"},
      dir.file("serve"), {.variables = {path}});
  EXPECT_TRUE(running.logs(" info ready ")) << running.log();
  own.run(one_event);
  EXPECT_TRUE(shows(running, {"settle_relay_published_total 1"}));
  const auto arguments = test::content_of("/proc/" + std::to_string(running.pid()) + "/cmdline");
  EXPECT_NE(arguments.find("settled"), std::string::npos);
  expect_no_password(arguments);
}

}  // namespace
}  // namespace settle::daemon
