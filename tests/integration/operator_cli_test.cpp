// What operators do about webhooks, locks and claims: the real program, on both databases.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <optional>
#include <thread>

#include "settle/claims.hpp"
#include "settle/failure.hpp"
#include "settle/lock.hpp"
#include "settle/postgres.hpp"
#include "settle/sqlite.hpp"
#include "settle/webhook.hpp"
#include "support/daemon_process.hpp"
#include "support/databases.hpp"
#include "support/expect_error.hpp"
#include "support/postgres_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"
#include "support/webhook_signer.hpp"

namespace settle {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using test::code_of;
using words = std::vector<std::string>;

class operator_cli : public ::testing::TestWithParam<dialect> {
 protected:
  void SetUp() override {
    if (GetParam() == dialect::postgres) {
      if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      server.emplace();
    }
    db = server ? postgres::open(server->conninfo(), {.env = {.log = &log}, .busy_timeout = 300ms})
                : sqlite::open(dir.file("service.db"), {.env = {.log = &log}, .busy_timeout = 300ms});
    migrate(*db);
  }

  test::outcome settle(words arguments) {
    arguments.insert(arguments.end(), {"--database", server ? server->conninfo() : dir.file("service.db")});
    return test::program(SETTLE_CLI, arguments, dir.file("call"), {}).end();
  }

  json::value settle_json(words arguments) {
    arguments.emplace_back("--json");
    const auto done = settle(arguments);
    EXPECT_EQ(done.code, 0) << done.err;
    return json::parse(done.out);
  }

  // A webhook that no worker can apply.
  void receive(const std::string& id) {
    const auto inbox = webhook::inbox(webhook::stripe("payments", {"secret"}));
    const auto body = R"({"id":")" + id + R"(","type":"paid","created":1,"data":{"object":{"id":"7"}}})";
    const auto signature = test::stripe_signature("secret", db->env().now(), body);
    inbox.receive(*db, {.headers = {{"Stripe-Signature", signature}}, .body = body});
  }
  std::unique_ptr<webhook::worker> make_worker(bool fails) {
    auto made = std::make_unique<webhook::worker>(*db);
    made->on("payments", "", [fails](const webhook::received&, transaction&) {
      if (fails) throw handler_failed(failure_class::permanent, "no such order");
      return webhook::answer::done;
    });
    return made;
  }

  test::temp_dir dir;
  test::quiet_log log;
  std::optional<test::scratch_database> server;
  std::unique_ptr<database> db;
};

// Proves A3
TEST_P(operator_cli, lists_shows_and_retries_webhooks) {
  EXPECT_EQ(settle({"webhook", "list"}).out,
            "no webhook matches; --status ANY lists those that are over too\n");
  receive("evt_1");
  receive("evt_2");
  while (make_worker(true)->run_once()) {
  }
  auto listed = settle_json({"webhook", "list"}).as_array();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].at("id"), "evt_1");
  EXPECT_EQ(listed[0].at("status"), "FAILED");
  EXPECT_EQ(listed[0].at("source"), "payments");
  EXPECT_NE(settle({"webhook", "list"}).out.find("no such order"), std::string::npos);
  EXPECT_EQ(settle_json({"webhook", "list", "--source", "other"}).as_array().size(), 0u);
  EXPECT_EQ(settle_json({"webhook", "list", "--limit", "1", "--after",
                         std::to_string(listed[0].at("number").as_int64())})
                .as_array()
                .at(0)
                .at("id"),
            "evt_2");
  EXPECT_EQ(settle({"webhook", "list", "--status", "failed"}).code, 2);

  const auto shown = settle({"webhook", "show", "payments", "evt_1"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find(R"("id":"evt_1")"), std::string::npos) << shown.out;
  EXPECT_EQ(settle_json({"webhook", "show", "payments", "evt_1"}).at("type"), "paid");
  EXPECT_EQ(settle({"webhook", "show", "payments", "evt_9"}).code, 2);

  EXPECT_EQ(settle({"webhook", "retry"}).code, 2);
  EXPECT_EQ(settle({"webhook", "retry", "payments", "evt_9"}).code, 2);
  EXPECT_EQ(settle_json({"webhook", "retry", "payments", "evt_1"}).at("retried"), 1);
  EXPECT_EQ(settle({"webhook", "retry", "payments", "evt_1"}).code, 2) << "it waits already";
  EXPECT_EQ(settle_json({"webhook", "retry", "payments", "--all"}).at("retried"), 1);
  while (make_worker(false)->run_once()) {
  }
  EXPECT_EQ(settle_json({"webhook", "list"}).as_array().size(), 0u);
  listed = settle_json({"webhook", "list", "--status", "APPLIED"}).as_array();
  EXPECT_EQ(listed.size(), 2u);
}

// Proves G2
TEST_P(operator_cli, takes_a_lock_away_and_fences_its_owner_off) {
  EXPECT_EQ(settle_json({"lock", "list"}).as_array().size(), 0u);
  EXPECT_EQ(settle({"lock", "show", "report"}).code, 2);
  locks all(*db);
  auto held = std::move(*all.try_acquire("report", {.ttl = 1h}));
  const auto epoch = std::to_string(held.token().epoch);
  const auto shown = settle_json({"lock", "show", "report"});
  EXPECT_EQ(shown.at("state"), "held");
  EXPECT_EQ(shown.at("owner").as_string(), held.token().owner.text());
  EXPECT_NE(settle({"lock", "list"}).out.find("report"), std::string::npos);

  const auto asked = settle({"lock", "release", "report"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_NE(asked.err.find("--epoch " + epoch), std::string::npos) << asked.err;
  EXPECT_TRUE(held.renew()) << "nothing was changed";
  const auto released = settle({"lock", "release", "report", "--epoch", epoch});
  EXPECT_EQ(released.code, 0) << released.err;
  EXPECT_EQ(settle({"lock", "release", "report", "--epoch", epoch}).code, 2) << "nobody has it";

  EXPECT_EQ(code_of([&] {
              auto tx = db->begin();
              fenced(tx, held);
            }),
            errc::ownership_lost);
  EXPECT_FALSE(held.renew());
  auto next = all.try_acquire("report");
  ASSERT_TRUE(next) << "at once";
  EXPECT_GT(next->token().epoch, held.token().epoch);
  EXPECT_EQ(held.release(), release_outcome::lost);
  EXPECT_FALSE(take_lock_away(*db, "report", held.token())) << "somebody else's stays";
  EXPECT_EQ(settle({"lock", "release", "report", "--epoch", epoch}).code, 2) << "likewise";
  next->release();
  EXPECT_EQ(settle_json({"lock", "list"}).as_array().size(), 0u);
  EXPECT_EQ(settle_json({"lock", "list", "--all"}).as_array().at(0).at("state"), "released");
}

// Proves G2
TEST_P(operator_cli, does_not_take_a_lock_away_in_the_middle_of_a_fenced_transaction) {
  locks all(*db);
  auto held = std::move(*all.try_acquire("report", {.ttl = 1h}));
  auto tx = db->begin();
  fenced(tx, held);
  EXPECT_EQ(code_of([&] { take_lock_away(*db, "report", held.token()); }), errc::store_busy);
  tx.commit();
  EXPECT_TRUE(take_lock_away(*db, "report", held.token()));
}

// Proves I7
TEST_P(operator_cli, shows_what_an_unknown_claim_was_about) {
  const auto keys = open_claims(*db);
  keys->claim({.who = {"shop", "ann@example.com", "4711-secret"},
               .lease = 1ms,
               .about = {.caller = "ann",
                         .key = "4711-…",
                         .method = "POST",
                         .target = "/payments",
                         .label = "order 42\x1b[2J"}});
  keys->claim({.who = {"shop", "bob", "k"}, .lease = 1ms});
  while (unknown_claims(*db).size() < 2) std::this_thread::sleep_for(1ms);
  const auto listed = settle({"keys", "unknown"}).out;
  EXPECT_NE(listed.find("\n  POST /payments, caller ann, key 4711-…, order 42\\x1b[2J\n"), std::string::npos)
      << listed;
  EXPECT_EQ(listed.find("secret"), std::string::npos);
  const auto shown = settle_json({"keys", "unknown"}).as_array();
  const auto& first = shown.at(0).at("label") == "" ? shown.at(1) : shown.at(0);
  EXPECT_EQ(first.at("caller"), "ann");
  EXPECT_EQ(first.at("method"), "POST");
  EXPECT_EQ(first.at("target"), "/payments");
  EXPECT_EQ(code_of([&] { keys->claim({.who = {"shop", "a", "k"}, .about = {.label = "\xff"}}); }),
            errc::invalid_argument);
  const std::string long_text(claim_about::bytes_max + 1, 'x');
  EXPECT_EQ(code_of([&] { keys->claim({.who = {"shop", "a", "k"}, .about = {.label = long_text}}); }),
            errc::payload_too_large);
}

INSTANTIATE_TEST_SUITE_P(databases, operator_cli, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
