// Idempotency keys of a running daemon, on every store: the real program, real connections, real kills.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <boost/json.hpp>
#include <thread>

#include "settle/redis.hpp"
#include "support/daemon_process.hpp"
#include "support/postgres_fixture.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

namespace json = boost::json;
using test::eventually;
using test::program;

enum class keys_in { sqlite, postgres, redis };
void PrintTo(keys_in of, std::ostream* out) {
  *out << (of == keys_in::sqlite ? "sqlite" : of == keys_in::postgres ? "postgres" : "redis");
}

struct daemon_keys : ::testing::TestWithParam<keys_in> {
  void SetUp() override {
    if (GetParam() == keys_in::postgres) {
      if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      own.emplace();
    }
    if (GetParam() == keys_in::redis)
      if (const auto missing = test::redis_missing(); !missing.empty()) GTEST_SKIP() << missing;
    service = "shop-" + std::to_string(::getpid()) + "-" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  std::unique_ptr<program> start(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"--listen", "127.0.0.1:0", "--data", dir.file("data")};
    if (own) arguments.insert(arguments.end(), {"--database", own->conninfo()});
    if (GetParam() == keys_in::redis && more.empty())
      arguments.insert(arguments.end(), {"--keys-redis", test::redis_url()});
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto made = std::make_unique<program>(SETTLED, arguments, dir.file("settled"), test::surroundings{});
    EXPECT_TRUE(made->logs(" info ready ")) << made->log();
    return made;
  }

  std::pair<int, json::object> ask(const program& at, const std::string& operation, json::object with) {
    with["service"] = service;
    with["caller"] = "ann";
    with["key"] = "k-1";
    const auto got = test::post(at.port(), "/v1/keys/" + operation, "Content-Type: application/json\r\n",
                                json::serialize(with));
    if (got.status == 0) return {0, {}};
    return {got.status, json::parse(got.body).as_object()};
  }

  test::temp_dir dir;
  std::optional<test::scratch_database> own;
  std::string service;
};

// Proves I1, I2, I4
TEST_P(daemon_keys, are_had_by_one_of_fifty_connections_and_answered_to_the_others) {
  const auto running = start();
  std::atomic<int> had = 0, told = 0;
  {
    std::vector<std::jthread> clients;
    for (int n = 0; n < 50; ++n)
      clients.emplace_back([&] {
        for (int tries = 0; tries < 2000; ++tries) {
          const auto [status, said] = ask(*running, "claim", {});
          if (status == 409) continue;
          ASSERT_EQ(status, 200) << json::serialize(said);
          if (said.at("outcome") == "completed") {
            EXPECT_EQ(said.at("answer").at("body"), "done");
            ++told;
            return;
          }
          ++had;
          EXPECT_EQ(
              ask(*running, "complete",
                  {{"token", said.at("token")}, {"answer", json::object{{"status", 201}, {"body", "done"}}}})
                  .first,
              200);
        }
      });
  }
  EXPECT_EQ(had, 1);
  EXPECT_EQ(told, 50);
  EXPECT_NE(test::get(running->port(), "/metrics")
                .body.find("settle_claims_total{operation=\"claim\",outcome=\"claimed\"} 1"),
            std::string::npos);
}

// Proves I4, I7
TEST_P(daemon_keys, survive_a_daemon_that_is_killed_between_claim_and_completion) {
  auto running = start();
  const auto mine = ask(*running, "claim", {}).second;
  ASSERT_EQ(mine.at("outcome"), "claimed");
  running->end(SIGKILL);
  running.reset();
  running = start();
  EXPECT_EQ(ask(*running, "claim", {}).second.at("code"), "idempotency_in_flight");
  const json::object completion{{"token", mine.at("token")}, {"answer", json::object{{"status", 201}}}};
  EXPECT_EQ(ask(*running, "complete", completion).first, 200);
  running->end(SIGKILL);
  running.reset();
  running = start();
  EXPECT_EQ(ask(*running, "claim", {}).second.at("outcome"), "completed");
}

std::string name_of(const ::testing::TestParamInfo<keys_in>& of) {
  return ::testing::PrintToString(of.param);
}
INSTANTIATE_TEST_SUITE_P(stores, daemon_keys,
                         ::testing::Values(keys_in::sqlite, keys_in::postgres, keys_in::redis), name_of);

// A PostgreSQL that can be stopped.
struct daemon_keys_in_postgres : daemon_keys {};
INSTANTIATE_TEST_SUITE_P(servers, daemon_keys_in_postgres, ::testing::Values(keys_in::postgres), name_of);

// Proves I2, I4
TEST_P(daemon_keys_in_postgres, are_refused_while_it_is_away_and_had_when_it_is_back) {
  const test::private_server server;
  own.reset();  // of the server that everybody shares
  const auto running = start({"--database", server.conninfo()});
  const auto mine = ask(*running, "claim", {}).second;
  ASSERT_EQ(mine.at("outcome"), "claimed");
  const json::object completion{{"token", mine.at("token")}, {"answer", json::object{{"status", 201}}}};
  server.command("stop postgres");
  for (int i = 0; i < 3; ++i) {
    const auto [status, said] = ask(*running, "claim", {});
    EXPECT_EQ(status, 503) << json::serialize(said);
    EXPECT_EQ(said.at("code"), "store_unavailable");
    EXPECT_EQ(ask(*running, "complete", completion).first, 503);
  }
  const auto refused =
      test::post(running->port(), "/v1/keys/claim", "Content-Type: application/json\r\n",
                 json::serialize(json::object{{"service", service}, {"caller", "bob"}, {"key", "fresh"}}));
  EXPECT_EQ(refused.status, 503) << "nor is one had that nobody has claimed";
  EXPECT_NE(refused.head.find("Retry-After"), std::string::npos) << refused.head;
  EXPECT_EQ(test::get(running->port(), "/readyz").status, 503);
  server.command("start postgres");
  EXPECT_TRUE(eventually([&] { return ask(*running, "claim", {}).first == 409; })) << "it has not forgotten";
  EXPECT_EQ(ask(*running, "complete", completion).first, 200) << running->log();
  EXPECT_EQ(ask(*running, "claim", {}).second.at("outcome"), "completed");
  EXPECT_TRUE(eventually([&] { return test::get(running->port(), "/readyz").status == 200; }));
}

// A Redis that can be stopped.
struct daemon_keys_in_redis : daemon_keys {};
INSTANTIATE_TEST_SUITE_P(servers, daemon_keys_in_redis, ::testing::Values(keys_in::redis), name_of);

// Proves I2, I4
TEST_P(daemon_keys_in_redis, are_refused_while_it_is_away_and_had_when_it_is_back) {
  const test::private_server server("redis");
  const auto running = start({"--keys-redis", server.redis_url()});
  ASSERT_EQ(ask(*running, "claim", {}).second.at("outcome"), "claimed");
  server.command("stop redis");
  EXPECT_EQ(ask(*running, "claim", {}).first, 503);
  EXPECT_EQ(test::get(running->port(), "/readyz").status, 503);
  server.command("start redis");
  EXPECT_TRUE(eventually([&] { return ask(*running, "claim", {}).first == 409; })) << "it has not forgotten";
  EXPECT_TRUE(eventually([&] { return test::get(running->port(), "/readyz").status == 200; }));
}

// Proves I2, I4
TEST_P(daemon_keys_in_redis, are_refused_by_one_that_has_become_a_replica_and_the_daemon_says_so) {
  const test::private_server server("redis");
  const auto running = start({"--keys-redis", server.redis_url()});
  const auto by_hand = redis::open(server.redis_url());
  EXPECT_EQ(test::get(running->port(), "/readyz").status, 200);
  by_hand->run({"REPLICAOF", "127.0.0.1", "1"});
  const auto page = test::get(running->port(), "/readyz");
  EXPECT_EQ(page.status, 503);
  EXPECT_NE(page.body.find("READONLY"), std::string::npos) << page.body;
  EXPECT_EQ(ask(*running, "claim", {}).first, 503);
  by_hand->run({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(eventually([&] { return test::get(running->port(), "/readyz").status == 200; }));
  EXPECT_EQ(ask(*running, "claim", {}).second.at("outcome"), "claimed");
}

// Proves I2
TEST_P(daemon_keys_in_redis, are_not_served_by_one_that_may_forget) {
  const test::private_server server("redis");
  const auto by_hand = redis::open(server.redis_url(), {.accept_forgetful_server = true});
  const auto set = [&](std::string_view what, std::string_view to) {
    by_hand->run({"CONFIG", "SET", what, to});
  };
  for (const auto& [setting, wrong, right] :
       {std::tuple("maxmemory-policy", "allkeys-lru", "noeviction"), std::tuple("appendonly", "no", "yes"),
        std::tuple("appendfsync", "no", "everysec")}) {
    set(setting, wrong);
    program refused(
        SETTLED,
        {"--listen", "127.0.0.1:0", "--data", dir.file("refused"), "--keys-redis", server.redis_url()},
        dir.file("refused.log"), test::surroundings{});
    const auto done = refused.end();
    EXPECT_EQ(done.code, 2) << done.err;
    EXPECT_NE(done.err.find("keys.redis cannot be used"), std::string::npos) << done.err;
    EXPECT_NE(done.err.find(setting), std::string::npos) << done.err;
    set(setting, right);
  }
  const auto running = start({"--keys-redis", server.redis_url()});
  ASSERT_EQ(ask(*running, "claim", {}).second.at("outcome"), "claimed");
  set("maxmemory-policy", "allkeys-lru");  // while it runs, and everybody has to connect anew
  by_hand->run({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  EXPECT_TRUE(eventually([&] {
    const auto [status, said] = ask(*running, "claim", {});
    return status == 503 && said.at("code") == "keys_store_unfit" &&
           said.at("detail").as_string().find("maxmemory-policy") != json::string::npos;
  })) << running->log();
  EXPECT_EQ(test::get(running->port(), "/readyz").status, 503);
  set("maxmemory-policy", "noeviction");
  EXPECT_TRUE(eventually([&] { return ask(*running, "claim", {}).first == 409; })) << running->log();
}

// Proves I2
TEST_P(daemon_keys_in_redis, are_not_kept_by_one_whose_url_cannot_be_read_and_its_password_is_not_shown) {
  const program wrong(SETTLED, {"--data", dir.file("data"), "--keys-redis", "http://:sesame@host"},
                      dir.file("wrong"), test::surroundings{});
  EXPECT_TRUE(wrong.logs("keys.redis")) << wrong.log();
  EXPECT_EQ(wrong.log().find("sesame"), std::string::npos) << wrong.log();
  program shown(SETTLED, {"--keys-redis", "redis://:sesame@cache:7000/2", "--print-config"},
                dir.file("shown"), test::surroundings{});
  const auto out = shown.end().out;
  EXPECT_NE(out.find("redis://cache:7000/2"), std::string::npos) << out;
  EXPECT_EQ(out.find("sesame"), std::string::npos) << out;
}

}  // namespace
}  // namespace settle
