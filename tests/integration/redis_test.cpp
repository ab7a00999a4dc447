// The Redis client on a real server.
#include "settle/redis.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "settle/error.hpp"
#include "settle/lock.hpp"
#include "support/expect_error.hpp"
#include "support/lock_worlds.hpp"
#include "support/tcp_proxy.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

// One part of the server's URL replaced.
std::string url_with(const std::string& from, const std::string& to) {
  auto url = redis_url();
  return url.replace(url.find(from), from.size(), to);
}
std::string port() {
  return redis_url().substr(redis_url().rfind(':') + 1, redis_url().rfind('/') - redis_url().rfind(':') - 1);
}

struct redis_client : ::testing::Test {
  void SetUp() override {
    if (const auto missing = redis_missing(); !missing.empty()) GTEST_SKIP() << missing;
    client = redis::open(redis_url());
  }
  std::string key(const std::string& name) const { return "test:client:" + name; }
  std::unique_ptr<redis::client> client;
};

TEST_F(redis_client, takes_and_gives_any_bytes) {
  const std::string bytes("a\0b\r\n\xff $5", 9);
  EXPECT_EQ(client->run({"SET", key("bytes"), bytes}).text, "OK");
  EXPECT_EQ(client->run({"GET", key("bytes")}).text, bytes);
  EXPECT_EQ(client->run({"SET", key("empty"), ""}).text, "OK");
  EXPECT_EQ(client->run({"GET", key("empty")}).type, redis::reply::kind::text);
  EXPECT_EQ(client->run({"DEL", key("bytes"), key("empty")}).integer, 2);
  EXPECT_TRUE(client->run({"GET", key("bytes")}).is_nil());
  EXPECT_EQ(client->run({"MGET", key("a"), key("b")}).items.size(), 2u);
}

TEST_F(redis_client, runs_scripts_also_after_the_server_has_forgotten_them) {
  const redis::script sum("return {KEYS[1], ARGV[1] + ARGV[2]}");
  const std::vector<std::string> keys{"k"}, values{"2", "3"};
  for (int round = 0; round < 3; ++round) {
    const auto answer = client->run(sum, keys, values);
    ASSERT_EQ(answer.items.size(), 2u);
    EXPECT_EQ(answer.items[0].text, "k");
    EXPECT_EQ(answer.items[1].integer, 5);
    if (round == 1) client->run({"SCRIPT", "FLUSH"});
  }
}

TEST_F(redis_client, errors_of_the_server_have_codes) {
  EXPECT_EQ(code_of([&] { client->run({"NOSUCHCOMMAND"}); }), errc::statement_failed);
  EXPECT_EQ(code_of([&] { client->run(std::span<const std::string_view>()); }), errc::invalid_argument);
  client->run({"SET", key("text"), "x"});
  EXPECT_EQ(code_of([&] { client->run({"INCR", key("text")}); }), errc::statement_failed);
  EXPECT_EQ(client->run({"PING"}).text, "PONG") << "and the connection goes on";
}

TEST_F(redis_client, signs_in_and_chooses_its_database) {
  const auto other = redis::open(url_with("/0", "/3"));
  client->run({"SET", key("db"), "0"});
  EXPECT_TRUE(other->run({"GET", key("db")}).is_nil());
  EXPECT_EQ(other->name(), "redis 127.0.0.1:" + port() + "/3");
  try {
    redis::open("redis://default:wrong-secret@127.0.0.1:" + port())->run({"PING"});
    FAIL() << "let in with a wrong password";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::store_unavailable);
    EXPECT_FALSE(e.outcome_unknown());
    EXPECT_EQ(std::string(e.what()).find("wrong-secret"), std::string::npos);
  }
  EXPECT_EQ(code_of([&] { redis::open("redis://127.0.0.1:" + port())->run({"PING"}); }),
            errc::store_unavailable);
}

TEST_F(redis_client, a_server_that_is_away_is_a_retryable_error_without_doubt) {
  const auto nobody = redis::open("redis://127.0.0.1:1");
  try {
    nobody->run({"PING"});
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::store_unavailable);
    EXPECT_TRUE(e.retryable());
    EXPECT_FALSE(e.outcome_unknown());
  }
}

TEST_F(redis_client, a_lost_answer_says_so_and_the_next_command_has_a_new_connection) {
  tcp_proxy line("127.0.0.1", std::stoi(port()));
  const auto through = redis::open(url_with(port(), std::to_string(line.port())), {.command_timeout = 300ms});
  through->run({"PING"});
  for (const auto fault : {tcp_proxy::cut, tcp_proxy::stall}) {
    line.arm(tcp_proxy::to_client, fault, 0);
    try {
      through->run({"INCR", key("doubt")});
      FAIL() << "an answer came through";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::store_unavailable);
      EXPECT_TRUE(e.outcome_unknown());
    }
    line.disarm();
    EXPECT_EQ(through->run({"PING"}).text, "PONG");
  }
}

TEST_F(redis_client, is_shared_by_threads_within_its_bound) {
  const auto few = redis::open(redis_url(), {.connections_max = 2});
  client->run({"DEL", key("shared")});
  {
    std::vector<std::jthread> threads;
    for (int n = 0; n < 8; ++n)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) few->run({"INCR", key("shared")});
      });
  }
  EXPECT_EQ(client->run({"GET", key("shared")}).text, "400");
}

// With a server that no other test sees.
struct private_redis : ::testing::Test {
  void SetUp() override {
    if (const auto missing = redis_missing(); !missing.empty()) GTEST_SKIP() << missing;
    server.emplace("redis");
    client = redis::open(server->redis_url());
  }
  std::optional<private_server> server;
  std::unique_ptr<redis::client> client;
};

TEST_F(private_redis, an_idle_connection_that_was_closed_is_noticed_before_anything_is_sent) {
  client->run({"PING"});
  redis::open(server->redis_url())->run({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  EXPECT_EQ(client->run({"PING"}).text, "PONG");
}

// After a failover the address leads to another server; the old one is still there, and takes no writes.
TEST_F(private_redis, that_has_become_a_replica_is_not_asked_again_over_the_same_connection) {
  const auto connection = [&] { return client->run({"CLIENT", "ID"}).integer; };
  const redis::script write("return redis.call('SET', KEYS[1], '1')");
  const std::vector<std::string> keys{"k"};
  auto last = connection();
  EXPECT_EQ(connection(), last);
  client->run({"REPLICAOF", "127.0.0.1", "1"});
  for (const bool by_script : {false, true}) {
    EXPECT_EQ(code_of([&] { by_script ? client->run(write, keys, {}) : client->run({"SET", "k", "1"}); }),
              errc::store_unavailable);
    EXPECT_NE(connection(), last);
    last = connection();
  }
  client->run({"REPLICAOF", "NO", "ONE"});
  EXPECT_EQ(connection(), last) << "what serves stays";
}

// RESET signs a connection out, as a user does that is deleted and made anew.
TEST_F(private_redis, that_does_not_know_a_connection_any_more_is_not_asked_again_over_it) {
  const auto before = client->run({"CLIENT", "ID"}).integer;
  client->run({"RESET"});
  EXPECT_EQ(code_of([&] { client->run({"PING"}); }), errc::store_unavailable) << "not signed in any more";
  EXPECT_NE(client->run({"CLIENT", "ID"}).integer, before);
}

TEST_F(private_redis, that_may_forget_is_refused_and_the_setting_named) {
  const auto refusal = [&](const std::string& setting, const std::string& value) {
    client->run({"CONFIG", "SET", setting, value});
    std::string said;
    try {
      redis::open(server->redis_url())->run({"PING"});
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      said = e.what();
    }
    EXPECT_EQ(redis::open(server->redis_url(), {.accept_forgetful_server = true})->run({"PING"}).text,
              "PONG");
    return said;
  };
  EXPECT_NE(refusal("maxmemory-policy", "allkeys-lru").find("maxmemory-policy allkeys-lru"),
            std::string::npos);
  client->run({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  EXPECT_EQ(refusal("appendfsync", "everysec"), "");
  EXPECT_NE(refusal("appendfsync", "no").find("appendfsync no"), std::string::npos);
  EXPECT_NE(refusal("appendonly", "no").find("appendonly"), std::string::npos);
}

TEST_F(private_redis, that_does_not_tell_how_it_syncs_is_taken) {
  client->run({"ACL", "SETUSER", "default", "-config"});
  const auto guest = redis::open(server->redis_url());
  EXPECT_EQ(code_of([&] { guest->run({"CONFIG", "GET", "appendfsync"}); }), errc::store_unavailable);
  EXPECT_EQ(guest->run({"PING"}).text, "PONG");
}

TEST_F(private_redis, that_is_full_says_so_and_nothing_is_taken) {
  advisory_locks locks(*client);
  auto before = locks.try_acquire("before");
  client->run({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(code_of([&] { locks.try_acquire("job"); }), errc::store_full);
  client->run({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(locks.try_acquire("job"));
}

// Proves G2
TEST_F(private_redis, that_is_killed_keeps_the_lock_and_nobody_runs_unprotected_meanwhile) {
  quiet_log log;
  const auto own = redis::open(server->redis_url(), {.env = {.log = &log}});
  advisory_locks locks(*own), others(*client);
  auto mine = locks.try_acquire("job", {.ttl = 10min});
  server->command("crash redis");
  EXPECT_EQ(code_of([&] { others.try_acquire("job"); }), errc::store_unavailable);
  EXPECT_EQ(code_of([&] { others.acquire("job", 1s); }), errc::store_unavailable);
  EXPECT_EQ(code_of([&] { mine->renew(); }), errc::store_unavailable);
  server->command("start redis");
  auto taken = others.try_acquire("job");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.holder().token, mine->token());
  EXPECT_TRUE(mine->renew());
  EXPECT_EQ(mine->release(), release_outcome::released);
}

struct advisory_lock_on_redis : ::testing::Test {
  void SetUp() override {
    if (const auto missing = redis_missing(); !missing.empty()) GTEST_SKIP() << missing;
    world.emplace();
  }
  std::optional<redis_lock_world> world;
};

// Proves G2
TEST_F(advisory_lock_on_redis, tokens_grow_also_after_redis_has_forgotten_everything) {
  const auto own = world->open();
  std::int64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    auto taken = own->locks->try_acquire("job");
    ASSERT_TRUE(taken);
    EXPECT_GT(taken->token().epoch, last);
    last = taken->token().epoch;
    world->clear();
    EXPECT_EQ(taken->release(), release_outcome::lost);
  }
}

// Proves G2
TEST_F(advisory_lock_on_redis, a_key_that_somebody_else_has_written_makes_nobody_an_owner) {
  const auto own = world->open();
  const auto key = world->prefix() + ":lock:{job}";
  for (const auto* foreign : {"1", "", "some text", "owner 12", "a b 3"}) {
    own->redis->run({"SET", key, foreign});
    EXPECT_EQ(code_of([&] { own->locks->try_acquire("job"); }), errc::statement_failed) << foreign;
    EXPECT_EQ(own->redis->run({"GET", key}).text, foreign) << "and it is left alone";
  }
  own->redis->run({"DEL", key});
  EXPECT_TRUE(own->locks->try_acquire("job"));
}

// Proves G2
TEST_F(advisory_lock_on_redis, a_lost_answer_is_resolved_by_asking_again) {
  tcp_proxy line("127.0.0.1", std::stoi(port()));
  quiet_log log;
  const auto through = redis::open(url_with(port(), std::to_string(line.port())), {.env = {.log = &log}});
  advisory_locks locks(*through, {.key_prefix = world->prefix()});
  locks.try_acquire("warm")->release();
  line.arm(tcp_proxy::to_client, tcp_proxy::cut, 0);
  auto mine = locks.try_acquire("job");
  EXPECT_TRUE(line.struck());
  ASSERT_TRUE(mine);
  EXPECT_FALSE(world->open()->locks->try_acquire("job"));
  line.arm(tcp_proxy::to_client, tcp_proxy::cut, 0);
  EXPECT_EQ(mine->release(), release_outcome::released);
  EXPECT_TRUE(line.struck());
  EXPECT_TRUE(world->open()->locks->try_acquire("job"));
}

}  // namespace
}  // namespace settle::test
