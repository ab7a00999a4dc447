// Locks on PostgreSQL, where transactions of several owners can be open at the same time.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "settle/error.hpp"
#include "settle/lock.hpp"
#include "settle/postgres.hpp"
#include "support/child_process.hpp"
#include "support/expect_error.hpp"
#include "support/lock_worlds.hpp"
#include "support/tcp_proxy.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

struct postgres_lock : ::testing::Test {
  void SetUp() override {
    if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    world.emplace();
  }
  std::optional<postgres_lock_world> world;
};

void write(transaction& tx, const lock& by) {
  fenced(tx, by);
  tx.execute("insert into written values (1)");
}

// Proves G2
TEST_F(postgres_lock, a_take_over_waits_for_the_fenced_transaction_of_the_former_owner) {
  const auto one = world->open();
  const auto two = world->open({.service = {.takeover_wait = 30s}});
  auto mine = one->locks->try_acquire("job", {.ttl = 10s});
  auto tx = one->db->begin();
  write(tx, *mine);
  world->pass(11s);
  std::optional<lock_attempt<lock>> taken;
  std::int64_t seen = -1;
  std::jthread taking([&] {
    taken = two->locks->try_acquire("job", {.ttl = 10s});
    seen = two->effects();
  });
  while (world->own.run("select count(*) from pg_stat_activity where wait_event_type = 'Lock'") != "1")
    std::this_thread::yield();
  tx.commit();
  taking.join();
  ASSERT_TRUE(*taken);
  EXPECT_EQ(seen, 1) << "what the former owner wrote is there when the lock is taken";
  auto late = one->db->begin();
  EXPECT_EQ(code_of([&] { fenced(late, *mine); }), errc::ownership_lost);
}

// Proves G2
TEST_F(postgres_lock, an_owner_that_is_stopped_in_a_fenced_transaction_keeps_the_lock) {
  child_process stopped([&] {
    const auto own = world->open();
    auto mine = own->locks->try_acquire("job", {.ttl = 10s});
    auto tx = own->db->begin();
    write(tx, *mine);
    ::raise(SIGSTOP);
    tx.commit();
    return mine->release() == release_outcome::released ? 0 : 1;
  });
  stopped.await_stop();
  const auto two = world->open({.service = {.takeover_wait = 100ms}});
  world->pass(11s);
  const auto started = steady::now();
  auto taken = two->locks->try_acquire("job");
  EXPECT_FALSE(taken);
  EXPECT_LT(steady::now() - started, 8s) << "waited for the pool's busy_timeout";
  EXPECT_NE(taken.holder().text().find("held by"), std::string::npos);
  stopped.resume();
  EXPECT_EQ(stopped.wait(), 0);
  EXPECT_EQ(two->effects(), 1);
  EXPECT_TRUE(two->locks->try_acquire("job"));
}

// Proves G2
TEST_F(postgres_lock, renewals_tries_and_more_transactions_pass_a_fenced_one) {
  const auto one = world->open();
  auto mine = one->locks->try_acquire("job", {.ttl = 10s});
  auto tx = one->db->begin();
  write(tx, *mine);
  const auto started = steady::now();
  world->pass(4s);
  EXPECT_TRUE(mine->renew());
  EXPECT_FALSE(one->locks->try_acquire("job"));
  auto second = one->db->begin();
  write(second, *mine);
  second.commit();
  EXPECT_LT(steady::now() - started, 9s) << "something waited for lock_timeout";
  tx.commit();
  EXPECT_EQ(one->effects(), 2);
}

// Proves G2
TEST_F(postgres_lock,
       a_fence_from_before_a_savepoint_outlasts_the_return_to_it_and_a_later_one_is_asked_again) {
  const auto one = world->open();
  const auto two = world->open({.service = {.takeover_wait = 0ms}});
  auto before = one->locks->try_acquire("before", {.ttl = 10s});
  auto after = one->locks->try_acquire("after", {.ttl = 10s});
  auto tx = one->db->begin();
  fenced(tx, *before);
  tx.execute("savepoint here");
  fenced(tx, *after);
  tx.execute("rollback to savepoint here");
  world->pass(11s);
  EXPECT_FALSE(two->locks->try_acquire("before"));
  auto taken = two->locks->try_acquire("after");
  EXPECT_TRUE(taken);
  EXPECT_EQ(code_of([&] { fenced(tx, *after); }), errc::ownership_lost);
}

// After its release the lock can be taken only when the fenced transaction is over. Proves G2
TEST_F(postgres_lock, a_release_does_not_open_the_door_to_a_transaction_under_way) {
  const auto one = world->open({.service = {.takeover_wait = 0ms}});
  auto mine = one->locks->try_acquire("job");
  auto tx = one->db->begin();
  write(tx, *mine);
  EXPECT_EQ(mine->release(), release_outcome::released);
  const auto others = one->locks->try_acquire("job");
  ASSERT_FALSE(others);
  EXPECT_GE(others.holder().until, world->time.now()) << others.holder().text();
  tx.commit();
  EXPECT_TRUE(one->locks->try_acquire("job"));
}

// Proves G2
TEST_F(postgres_lock, a_lost_answer_is_resolved_by_asking_again) {
  tcp_proxy line("127.0.0.1", std::stoi(word_of(postgres_conninfo(), "port")));
  quiet_log log;
  const auto db =
      postgres::open(with(world->own.conninfo(), "host=127.0.0.1 port=" + std::to_string(line.port())),
                     {.env = {.log = &log}});
  locks through(*db);
  auto warm = through.try_acquire("warm");
  warm->release();
  line.arm(tcp_proxy::to_client, tcp_proxy::cut, 0);
  auto mine = through.try_acquire("job");
  EXPECT_TRUE(line.struck());
  ASSERT_TRUE(mine) << "its own first call had taken it";
  EXPECT_EQ(mine->token().epoch, 1);
  line.arm(tcp_proxy::to_client, tcp_proxy::cut, 0);
  EXPECT_EQ(mine->release(), release_outcome::released);
  EXPECT_TRUE(line.struck());
}

// Proves G2
TEST_F(postgres_lock, its_owner_learns_in_time_that_it_has_expired_while_the_renewal_hangs) {
  tcp_proxy line("127.0.0.1", std::stoi(word_of(postgres_conninfo(), "port")));
  quiet_log log;
  const auto db =
      postgres::open(with(world->own.conninfo(), "host=127.0.0.1 port=" + std::to_string(line.port())),
                     {.env = {.log = &log}, .statement_timeout = 8s});
  locks through(*db);
  std::promise<lock_loss> lost;
  auto mine = through.try_acquire(
      "job",
      {.ttl = 1s, .renew = true, .on_lost = [&](const std::string&, lock_loss why) { lost.set_value(why); }});
  ASSERT_TRUE(mine);
  line.arm(tcp_proxy::to_client, tcp_proxy::stall, 0);
  const auto started = steady::now();
  const background loop(through);
  auto told = lost.get_future();
  EXPECT_EQ(told.get(), lock_loss::expired);
  EXPECT_LT(steady::now() - started, 4s) << "waited for the renewal";
  line.disarm();
}

}  // namespace
}  // namespace settle::test
