// What settled removes by itself: in slices, on the database of the service, while others write.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "daemon/services/sweeping.hpp"
#include "settle/claims.hpp"
#include "settle/metrics.hpp"
#include "settle/once.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "settle/webhook.hpp"
#include "support/daemon_process.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"
#include "support/webhook_signer.hpp"

namespace settle::daemon {
namespace {

using namespace std::chrono_literals;

class sweeper : public ::testing::Test {
 protected:
  sweeper() { migrate(*db); }

  void execute_request(database& in, const std::string& key, duration keep) {
    once(in, {"shop", "me", key}, [](transaction&) { return answer{.body = "ok"}; }, {.keep = keep});
  }

  void complete_claim(const std::string& key, duration keep) {
    const auto keys = open_claims(*db);
    const request_identity who{"shop", "me", key};
    const auto mine = keys->claim({.who = who, .keep = keep});
    keys->complete(who, mine.token, {.body = "ok"}, keep);
  }

  // Applied at once, so it is over.
  void apply_webhook(database& in, const std::string& id) {
    const auto body = R"({"id":")" + id + "\"}";
    const webhook::inbox inbox(webhook::stripe("stripe", {"secret"}));
    const auto signature = test::stripe_signature("secret", in.env().now(), body);
    const auto done = inbox.apply(in, {.headers = {{"Stripe-Signature", signature}}, .body = body},
                                  [](const auto&, transaction&) { return webhook::answer::done; });
    EXPECT_EQ(done.status, 200);
  }

  std::int64_t count(const std::string& table) {
    return db->read().execute("select count(*) from " + table)[0][0].integer();
  }
  std::int64_t requests() { return count("settle_idempotency_keys"); }
  std::int64_t webhooks() { return count("settle_webhook_events"); }

  test::temp_dir dir;
  testing::manual_time time;
  test::quiet_log log;
  metrics counters;
  std::unique_ptr<database> db =
      sqlite::open(dir.file("settle.db"), {.env = {.time = &time, .log = &log, .counters = &counters}});
};

// Proves I7, A3, D7
TEST_F(sweeper, removes_in_slices_with_a_pause_between_them_and_says_so_once) {
  for (int i = 0; i < 5; ++i) execute_request(*db, std::to_string(i), 1h);
  for (int i = 0; i < 3; ++i) apply_webhook(*db, std::to_string(i));
  execute_request(*db, "later", 48h);
  sweeping sweep(*db, {.interval = 1min, .webhook_keep = 24h, .slice_max = 2, .slice_pause = 10ms});
  EXPECT_FALSE(sweep.run_once({}));
  EXPECT_EQ(requests() + webhooks(), 9) << "nobody's time is over";
  EXPECT_EQ(sweep.idle_wait(), 1min);
  time.advance(25h);
  for (const auto& [requests_left, webhooks_left] : {std::pair(4, 1), std::pair(2, 0), std::pair(1, 0)}) {
    EXPECT_FALSE(sweep.run_once({}));
    EXPECT_EQ(requests(), requests_left);
    EXPECT_EQ(webhooks(), webhooks_left);
    EXPECT_EQ(sweep.idle_wait(), requests_left == 1 ? 1min : duration(10ms));
  }
  EXPECT_EQ(counters.value("settle_swept_total", {{"what", "requests"}}), 5);
  EXPECT_EQ(counters.value("settle_swept_total", {{"what", "webhooks"}}), 3);
  EXPECT_EQ(log.count("swept"), 1U);
  sweep.run_once({});
  EXPECT_EQ(log.count("swept"), 1U) << "a sweep that finds nothing says nothing";
}

// Records and claims are removed together, so a slice may have more than one kind's share. Proves I7
TEST_F(sweeper, goes_on_while_there_are_more_of_any_kind) {
  for (int i = 0; i < 5; ++i) execute_request(*db, std::to_string(i), 1h);
  complete_claim("claimed", 1h);
  sweeping sweep(*db, {.interval = 1min, .slice_max = 2, .slice_pause = 10ms});
  time.advance(2h);
  sweep.run_once({});
  EXPECT_EQ(requests(), 3);
  EXPECT_EQ(count("settle_idempotency_claims"), 0);
  EXPECT_EQ(sweep.idle_wait(), duration(10ms));
}

// Claims without an answer stay, and fill a slice that removes less. Proves I7
TEST_F(sweeper, goes_on_past_claims_without_an_answer) {
  for (int i = 0; i < 60; ++i)
    if (i % 5 == 4)
      open_claims(*db)->claim({.who = {"shop", "me", "open " + std::to_string(i)}, .keep = 1h});
    else
      complete_claim(std::to_string(i), 1h);
  time.advance(3h);
  sweeping sweep(*db, {.interval = 1min, .slice_max = 9, .slice_pause = 10ms});
  int slices = 0;
  do {
    sweep.run_once({});
  } while (sweep.idle_wait() == duration(10ms) && ++slices < 60);
  EXPECT_EQ(sweep.idle_wait(), 1min);
  EXPECT_EQ(count("settle_idempotency_claims where status is not null"), 0);
  EXPECT_EQ(count("settle_idempotency_claims"), 12) << "kept until they are known";
  EXPECT_GE(slices, 5) << "each in a transaction of its own";
  EXPECT_EQ(counters.value("settle_swept_total", {{"what", "requests"}}), 48);
  EXPECT_EQ(log.count("swept"), 1U);
}

// Proves I7, A3, D7
TEST_F(sweeper, of_the_daemon_makes_rows_vanish_and_counts_them) {
  std::filesystem::create_directory(dir.file("data"));
  {
    const auto real = sqlite::open(dir.file("data/settle.db"));
    migrate(*real);
    execute_request(*real, "over", 1us);
    execute_request(*real, "kept", 1h);
    apply_webhook(*real, "over");
    auto tx = real->begin();
    tx.execute("update settle_webhook_events set received_at = 1, finished_at = 1");  // in 1970
    tx.commit();
    apply_webhook(*real, "kept");
  }
  test::program running(SETTLED,
                        {"--data", dir.file("data"), "--listen", "127.0.0.1:0", "--sweep-interval", "100ms"},
                        dir.file("settled"), {});
  std::string page;
  EXPECT_TRUE(test::eventually([&] {
    page = test::get(running.port(), "/metrics").body;
    return page.find("\nsettle_swept_total{what=\"requests\"} 1\n") != std::string::npos &&
           page.find("\nsettle_swept_total{what=\"webhooks\"} 1\n") != std::string::npos;
  })) << page;
  EXPECT_TRUE(running.logs(" info swept requests="));
  const auto done = running.end(SIGTERM);
  EXPECT_EQ(done.code, 0) << done.err;
  db = sqlite::open(dir.file("data/settle.db"));
  EXPECT_EQ(requests(), 1);
  EXPECT_EQ(webhooks(), 1);
}

}  // namespace
}  // namespace settle::daemon
