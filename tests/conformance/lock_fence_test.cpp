// What a lock protects, on every store: crashes, many owners at once, owners that are stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <type_traits>

#include "settle/error.hpp"
#include "settle/lock.hpp"
#include "support/child_process.hpp"
#include "support/expect_error.hpp"
#include "support/lock_worlds.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

// A lock in Redis is no fence in a database.
template <class Lock>
concept fences_directly = requires(transaction& tx, const Lock& by) { fenced(tx, by); };
static_assert(fences_directly<lock> && !fences_directly<advisory_lock>);
static_assert(!std::is_convertible_v<advisory_lock&, lock&>);

template <class World>
struct lock_fence : ::testing::Test {
  using process = typename World::process;

  void SetUp() override {
    if (const auto missing = World::missing(); !missing.empty()) GTEST_SKIP() << missing;
    world.emplace();
  }

  // Work that must happen once, in whatever process.
  template <class Lock>
  static void work_once(process& by, const Lock& under) {
    auto tx = by.db->begin();
    World::fence(tx, under);
    if (tx.execute("select count(*) from written")[0][0].integer() == 0)
      tx.execute("insert into written values (1)");
    tx.commit("work");
  }

  // A counter that is read and then written: two owners at once would write the same number twice. False if
  // the lock was lost meanwhile.
  template <class Lock>
  static bool count_up(process& by, const Lock& under) {
    auto last = by.number("select last from counter");
    try {
      auto tx = by.db->begin();
      World::fence(tx, under);
      // The fence of another database than the lock's knows of an owner only when that one has come by.
      if (!World::same_database) last = tx.execute("select last from counter")[0][0].integer();
      tx.execute("insert into written values ($1)", {last + 1});
      tx.execute("update counter set last = $1", {last + 1});
      tx.commit();
      return true;
    } catch (const error& e) {
      if (e.code() != errc::ownership_lost) throw;
      return false;
    }
  }

  // Threads of one process, each until it has counted `times`.
  void count_with_threads(int threads, int times, duration ttl) {
    const auto own = world->open({.real_time = true, .service = {.poll_max = 5ms}});
    std::vector<std::jthread> running;
    for (int n = 0; n < threads; ++n)
      running.emplace_back([&] {
        for (int done = 0; done < times;) {
          auto taken = own->locks->acquire("counter", 120s, {.ttl = ttl});
          if (!taken) throw std::logic_error("the lock did not come");
          done += count_up(*own, *taken);
        }
      });
  }

  void expect_counted(std::int64_t times) {
    const auto own = world->open();
    EXPECT_EQ(own->effects(), times);
    EXPECT_EQ(own->number("select count(distinct what) from written"), times) << "a number was given twice";
    EXPECT_EQ(own->number("select last from counter"), times);
  }

  std::optional<World> world;
};

struct fence_world_names {
  template <class World>
  static std::string GetName(int) {
    if (std::is_same_v<World, sqlite_lock_world>) return "sqlite";
    return std::is_same_v<World, postgres_lock_world> ? "postgres" : "redis";
  }
};
using worlds = ::testing::Types<sqlite_lock_world, postgres_lock_world, redis_lock_world>;
TYPED_TEST_SUITE(lock_fence, worlds, fence_world_names);

// Proves G2
TYPED_TEST(lock_fence, survives_a_failure_and_a_kill_at_every_fault_point) {
  const auto whole = [&](typename TypeParam::process& by) {
    auto taken = by.locks->try_acquire("job", {.ttl = 10s, .renew = true});
    ASSERT_TRUE(taken);
    this->work_once(by, *taken);
    this->world->time.advance(4s);
    by.locks->run_once();
    taken->release();
  };
  const auto found = testing::explore({
      .prepare = [&] { this->world->clear(); },
      .run = [&](fault_points& faults) { whole(*this->world->open({.faults = &faults})); },
      .recover =
          [&] {
            this->world->pass(1h);
            whole(*this->world->open());
          },
      .check = [&](const std::string& where) { EXPECT_EQ(this->world->open()->effects(), 1) << where; },
  });
  for (const std::string effect : {"lock.acquire", "lock.renew", "lock.release"})
    EXPECT_EQ(std::ranges::count(found.points, effect + ".before"), 1) << effect;
}

// Proves G2
TYPED_TEST(lock_fence, many_threads_of_two_processes_never_hold_one_lock_together) {
  child_process other([&] {
    this->count_with_threads(4, 15, 60s);
    return 0;
  });
  this->count_with_threads(4, 15, 60s);
  EXPECT_EQ(other.wait(), 0);
  this->expect_counted(2 * 4 * 15);
}

// Locks that end at once: owners lose them all the time, and what the fence lets through is still right.
// Proves G2
TYPED_TEST(lock_fence, owners_that_lose_their_locks_all_the_time_write_nothing_twice) {
  child_process other([&] {
    this->count_with_threads(3, 10, 5ms);
    return 0;
  });
  this->count_with_threads(3, 10, 5ms);
  EXPECT_EQ(other.wait(), 0);
  this->expect_counted(2 * 3 * 10);
}

// Proves G2
TYPED_TEST(lock_fence, an_owner_that_was_stopped_and_replaced_cannot_write) {
  child_process stopped([&] {
    const auto first = this->world->open();
    auto mine = first->locks->try_acquire("job", {.ttl = 10s});
    if (!mine || !this->count_up(*first, *mine)) return 1;
    ::raise(SIGSTOP);
    if (this->count_up(*first, *mine)) return 2;
    if (mine->renew()) return 3;
    return mine->release() == release_outcome::lost ? 0 : 4;
  });
  stopped.await_stop();
  const auto second = this->world->open();
  EXPECT_FALSE(second->locks->try_acquire("job"));
  this->world->pass(11s);
  auto taken = second->locks->try_acquire("job");
  ASSERT_TRUE(taken);
  EXPECT_TRUE(this->count_up(*second, *taken));
  stopped.resume();
  EXPECT_EQ(stopped.wait(), 0);
  EXPECT_TRUE(this->count_up(*second, *taken)) << "and what it did has not hurt the owner";
  this->expect_counted(3);
}

// A stop that is longer than the ttl hurts nobody as long as nobody has come. Proves G2
TYPED_TEST(lock_fence, an_expired_lock_that_nobody_has_taken_still_writes) {
  const auto own = this->world->open();
  auto mine = own->locks->try_acquire("job", {.ttl = 10s});
  this->world->pass(11s);
  EXPECT_TRUE(this->count_up(*own, *mine));
  EXPECT_EQ(mine->renew(), TypeParam::same_database) << "Redis has forgotten it";
}

// On one machine the clock of the processes decides, and no lock lasts for more than a day by it. Proves G2
TEST(lock_fence_on_sqlite, a_clock_that_is_set_back_far_does_not_keep_a_lock_for_as_long) {
  sqlite_lock_world world;
  const auto one = world.open(), two = world.open();
  auto crashed = one->locks->try_acquire("job", {.ttl = 10s});
  world.time.advance(-23h);
  EXPECT_FALSE(two->locks->try_acquire("job")) << "somebody may have locked it for so long";
  world.time.advance(-2h);
  auto taken = two->locks->try_acquire("job", {.ttl = 10s});
  ASSERT_TRUE(taken);
  EXPECT_GT(taken->token().epoch, crashed->token().epoch);
  auto tx = one->db->begin();
  EXPECT_EQ(code_of([&] { fenced(tx, *crashed); }), errc::ownership_lost);
}

// Proves G2
TYPED_TEST(lock_fence, a_resource_in_another_database_remembers_the_highest_token) {
  const auto own = this->world->open();
  auto first = own->locks->try_acquire("job", {.ttl = 10s});
  this->world->pass(11s);
  auto second = own->locks->try_acquire("job", {.ttl = 10s});
  ASSERT_TRUE(second);
  sqlite_lock_world elsewhere;
  const auto other = elsewhere.open();
  const auto passes = [&](const fence_token& token, std::string_view resource = "warehouse") {
    auto tx = other->db->begin();
    const auto refused = code_of([&] { fenced(tx, resource, token); });
    tx.commit();
    return refused;
  };
  EXPECT_EQ(passes(first->token()), std::nullopt) << "nobody newer has come by";
  EXPECT_EQ(passes(second->token()), std::nullopt);
  EXPECT_EQ(passes(second->token()), std::nullopt);
  EXPECT_EQ(passes(first->token()), errc::ownership_lost);
  EXPECT_EQ(passes({first->token().owner, second->token().epoch}), errc::ownership_lost) << "no two owners";
  EXPECT_EQ(passes(first->token(), "another resource"), std::nullopt);
  EXPECT_EQ(passes(first->token(), ""), errc::invalid_name);
}

}  // namespace
}  // namespace settle::test
