// Webhooks at the daemon where the journal is in a PostgreSQL, which may go away.
#include <signal.h>

#include "settle/once.hpp"
#include "settle/postgres.hpp"
#include "support/postgres_fixture.hpp"
#include "support/webhook_daemon.hpp"

namespace settle::daemon {
namespace {

using test::eventually;
using test::program;

class postgres_daemon_webhooks : public test::webhook_daemon {
 protected:
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }

  static std::vector<std::string> on(const std::string& conninfo) { return {"SETTLE_DATABASE=" + conninfo}; }
};

// In 1970. Those that somebody still has to do something about are left alone.
constexpr auto finish_long_ago =
    "update settle.webhook_events set received_at = 1, finished_at = 1 where finished_at is not null";

// Proves A3
TEST_F(postgres_daemon_webhooks, become_one_event_each_however_often_they_are_sent) {
  const test::scratch_database own;
  const auto running = start_ready({}, on(own.conninfo()));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(send_stripe(*running, charge("evt_1")).status, 200);
    EXPECT_EQ(send_standard(*running, "msg_1", R"({"type":"contact.created"})").status, 200);
    EXPECT_EQ(send_gateway(*running, R"({"transaction":{"id":"t1"}})").status, 200);
  }
  EXPECT_EQ(send_stripe(*running, charge("evt_1"), "another secret").status, 401);
  ASSERT_TRUE(arrive("payments", 1) && arrive("crm", 1) && arrive("gateway", 1)) << running->log();
  EXPECT_TRUE(shows(*running, "settle_outbox_pending_events 0"));
  EXPECT_EQ(messages("payments").size() + messages("crm").size() + messages("gateway").size(), 3U);
  EXPECT_EQ(own.run("select count(*) from settle.webhook_events where status = 'APPLIED'"), "3");
}

// Proves A3
TEST_F(postgres_daemon_webhooks, are_answered_503_while_the_server_is_away_and_taken_later) {
  const test::private_server server;
  const auto conninfo = server.conninfo();
  server.command("stop postgres");
  const auto running = start({"--sweep-interval", "100ms"}, on(conninfo));
  EXPECT_TRUE(running->logs(" warning database_away ")) << running->log();
  EXPECT_EQ(send_stripe(*running, charge("evt_1")).status, 503) << "away since before the start";
  server.command("start postgres");
  EXPECT_TRUE(eventually([&] { return send_stripe(*running, charge("evt_1")).status == 200; }))
      << running->log();
  EXPECT_TRUE(arrive("payments", 1));
  server.command("stop postgres");
  EXPECT_EQ(send_stripe(*running, charge("evt_2")).status, 503);
  EXPECT_EQ(send_stripe(*running, charge("evt_2"), "another secret").status, 401)
      << "a forged one has no second try";
  server.command("start postgres");
  EXPECT_TRUE(eventually([&] { return send_stripe(*running, charge("evt_2")).status == 200; }))
      << running->log();
  EXPECT_TRUE(arrive("payments", 2)) << running->log();
  EXPECT_TRUE(eventually([&] { return test::get(running->port(), "/readyz").status == 200; }));
  EXPECT_EQ(messages("payments").size(), 2U);
  test::run_sql(conninfo, finish_long_ago);
  EXPECT_TRUE(shows(*running, "settle_swept_total{what=\"webhooks\"} 2")) << "the sweeper is back as well";
  server.command("stop postgres");
  const auto done = running->end(SIGTERM);
  EXPECT_EQ(done.code, 0) << done.err;
  expect_no_secret(done.err);
}

// Proves A3
TEST_F(postgres_daemon_webhooks, survive_the_death_of_the_daemon_between_answer_and_event) {
  const test::scratch_database own;
  const auto db = postgres::open(own.conninfo());
  migrate(*db);
  const auto running = start_ready({"--relay-lease-ttl", "1s"}, on(own.conninfo()));
  auto blocking = db->begin();
  blocking.execute("lock table settle.webhook_keys in exclusive mode");  // nobody can forward
  ASSERT_EQ(send_stripe(*running, charge("evt_1")).status, 200);
  EXPECT_TRUE(eventually([&] { return own.run("select count(*) from pg_locks where not granted") != "0"; }))
      << "the worker is at it";
  running->end(SIGKILL);
  EXPECT_EQ(own.run("select status from settle.webhook_events"), "RECEIVED");
  EXPECT_TRUE(messages("payments").empty());
  blocking.rollback();
  const auto next = start_ready({}, on(own.conninfo()));
  EXPECT_TRUE(arrive("payments", 1)) << next->log();
  EXPECT_EQ(send_stripe(*next, charge("evt_1")).status, 200);
  EXPECT_TRUE(shows(*next, "settle_webhooks_total{source=\"stripe\",outcome=\"duplicate\"} 1"));
  EXPECT_EQ(messages("payments").size(), 1U);
}

// Proves I7, A3, D7
TEST_F(postgres_daemon_webhooks, and_requests_that_are_over_are_swept) {
  const test::scratch_database own;
  const auto db = postgres::open(own.conninfo());
  migrate(*db);
  for (const auto& [key, keep] :
       {std::pair("over", duration(1)), std::pair("kept", duration(std::chrono::hours(1)))})
    once(*db, {"shop", "me", key}, [](transaction&) { return settle::answer{.body = "ok"}; }, {.keep = keep});
  const auto running = start_ready({"--sweep-interval", "100ms"}, on(own.conninfo()));
  EXPECT_EQ(send_stripe(*running, charge("evt_1")).status, 200);
  EXPECT_TRUE(arrive("payments", 1));
  own.run(finish_long_ago);
  EXPECT_TRUE(shows(*running, "settle_swept_total{what=\"webhooks\"} 1"));
  EXPECT_TRUE(shows(*running, "settle_swept_total{what=\"requests\"} 1"));
  EXPECT_EQ(own.run("select count(*) from settle.webhook_events"), "0");
  EXPECT_EQ(own.run("select count(*) from settle.idempotency_keys"), "1");
}

}  // namespace
}  // namespace settle::daemon
