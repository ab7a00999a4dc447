// What a lock is, on every store.
#include "settle/lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "settle/error.hpp"
#include "settle/service.hpp"
#include "support/expect_error.hpp"
#include "support/lock_worlds.hpp"
#include "support/lost_answer.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

template <class World>
struct lock_conformance : ::testing::Test {
  void SetUp() override {
    if (const auto missing = World::missing(); !missing.empty()) GTEST_SKIP() << missing;
    world.emplace();
    one = world->open();
    two = world->open();
  }

  template <class Lock>
  std::optional<errc> write(typename World::process& by, const Lock& under, int what = 1) {
    return code_of([&] {
      auto tx = by.db->begin();
      World::fence(tx, under);
      tx.execute("insert into written values ($1)", {what});
      tx.commit();
    });
  }

  std::optional<World> world;
  std::unique_ptr<typename World::process> one, two;
};

struct world_names {
  template <class World>
  static std::string GetName(int) {
    if (std::is_same_v<World, sqlite_lock_world>) return "sqlite";
    return std::is_same_v<World, postgres_lock_world> ? "postgres" : "redis";
  }
};
using worlds = ::testing::Types<sqlite_lock_world, postgres_lock_world, redis_lock_world>;
TYPED_TEST_SUITE(lock_conformance, worlds, world_names);

// Whoever forgets to ask. Proves G2
TYPED_TEST(lock_conformance, that_was_not_had_cannot_be_used) {
  auto mine = this->one->locks->try_acquire("report", {.ttl = 10s});
  auto others = this->two->locks->try_acquire("report", {.ttl = 10s});
  EXPECT_EQ(code_of([&] { (void)others->token(); }), errc::ownership_lost);
  EXPECT_EQ(code_of([&] { (void)(*others).renew(); }), errc::ownership_lost);
  EXPECT_EQ(code_of([&] { (void)mine.holder(); }), errc::unexpected_result);
}

// Proves G2
TYPED_TEST(lock_conformance, has_one_owner_and_tells_others_who) {
  auto mine = this->one->locks->try_acquire("report", {.ttl = 10s});
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->name(), "report");
  EXPECT_GT(mine->token().epoch, 0);
  for (auto* asking : {&this->one, &this->two}) {
    auto others = (*asking)->locks->try_acquire("report", {.ttl = 10s});
    ASSERT_FALSE(others);
    EXPECT_EQ(others.holder().token, mine->token());
    EXPECT_EQ(others.holder().text().find("held by " + mine->token().owner.text() + ", until 20"), 0u)
        << others.holder().text();
  }
  EXPECT_TRUE(this->two->locks->try_acquire("another", {.ttl = 10s}));
  EXPECT_EQ(this->two->counters.value("settle_locks_asked_total", {{"outcome", "held"}}), 1);
}

// Proves G2: a failure while an outcome is looked for does not make it known.
TYPED_TEST(lock_conformance, is_in_doubt_where_the_answer_was_lost_and_the_store_is_away_after_it) {
  lost_answer asking("lock.acquire"), releasing("lock.release");
  EXPECT_TRUE(leaves_in_doubt(
      [&] { this->world->open({.faults = &asking})->locks->try_acquire("report", {.ttl = 10s}); }));
  EXPECT_FALSE(this->one->locks->try_acquire("report")) << "it was taken";
  const auto owner = this->world->open({.faults = &releasing});
  auto mine = owner->locks->try_acquire("another", {.ttl = 10s});
  EXPECT_TRUE(leaves_in_doubt([&] { mine->release(); }));
  EXPECT_TRUE(this->one->locks->try_acquire("another")) << "it was released";
}

// Proves G2
TYPED_TEST(lock_conformance, is_free_after_its_release_and_a_second_release_is_harmless) {
  auto mine = this->one->locks->try_acquire("report");
  EXPECT_EQ(mine->release(), release_outcome::released);
  EXPECT_EQ(this->write(*this->one, *mine),
            TypeParam::same_database ? std::optional(errc::ownership_lost) : std::nullopt)
      << "where the lock is in the same database, its release is seen";
  auto next = this->two->locks->try_acquire("report");
  ASSERT_TRUE(next);
  EXPECT_EQ(mine->release(), release_outcome::released) << "it was, and that somebody has it now is no loss";
  EXPECT_FALSE(mine->lost());
  EXPECT_FALSE(mine->renew());
  EXPECT_FALSE(this->one->locks->try_acquire("report")) << "somebody else's lock was released";
  EXPECT_EQ(this->write(*this->two, *next), std::nullopt);
}

// Proves G2
TYPED_TEST(lock_conformance, is_released_at_the_end_of_its_scope) {
  {
    const auto mine = this->one->locks->try_acquire("report");
  }
  auto next = this->two->locks->try_acquire("report");
  ASSERT_TRUE(next);
  auto moved = std::move(*next);
  EXPECT_FALSE(this->one->locks->try_acquire("report"));
  EXPECT_EQ(moved.release(), release_outcome::released);
}

// Proves G2
TYPED_TEST(lock_conformance, every_owner_has_a_higher_epoch_than_all_before) {
  std::int64_t last = 0;
  for (int round = 0; round < 6; ++round) {
    auto& who = round % 2 == 0 ? this->one : this->two;
    auto taken = who->locks->try_acquire("report", {.ttl = 10s});
    ASSERT_TRUE(taken) << round;
    EXPECT_GT(taken->token().epoch, last);
    last = taken->token().epoch;
    if (round % 3 != 0) taken->release();
    this->world->pass(11s);
  }
}

// Proves G2
TYPED_TEST(lock_conformance, one_that_is_lost_cannot_write_and_its_release_ends_nothing) {
  std::vector<std::string> losses;
  auto mine = this->one->locks->try_acquire(
      "report", {.ttl = 10s, .on_lost = [&](const std::string& name, lock_loss why) {
                   losses.push_back(name + " " + std::string(to_string(why)));
                 }});
  EXPECT_EQ(this->write(*this->one, *mine, 1), std::nullopt);
  this->world->pass(11s);
  auto next = this->two->locks->try_acquire("report", {.ttl = 10s});
  ASSERT_TRUE(next);
  EXPECT_EQ(this->write(*this->two, *next, 2), std::nullopt);

  EXPECT_EQ(this->write(*this->one, *mine, 3), errc::ownership_lost);
  EXPECT_FALSE(mine->lost()) << "nobody has told it yet";
  EXPECT_FALSE(mine->renew());
  EXPECT_TRUE(mine->lost());
  EXPECT_EQ(mine->release(), release_outcome::lost);
  EXPECT_EQ(losses, std::vector<std::string>{"report taken"}) << "told once";
  EXPECT_EQ(this->one->log.count("lock_lost"), 1u);
  EXPECT_EQ(this->one->counters.value("settle_locks_lost_total", {{"why", "taken"}}), 1);

  EXPECT_FALSE(this->one->locks->try_acquire("report")) << "the new owner still has it";
  EXPECT_EQ(this->write(*this->two, *next, 4), std::nullopt);
  EXPECT_EQ(this->one->effects(), 3);
}

// Proves G2
TYPED_TEST(lock_conformance, is_renewed_by_the_loop_for_as_long_as_its_owner_wants) {
  auto& locks = *this->one->locks;
  auto mine = locks.try_acquire("report", {.ttl = 9s, .renew = true});
  auto lazy = locks.try_acquire("lazy", {.ttl = 9s});
  const auto first_end = mine->until();
  EXPECT_EQ(locks.idle_wait(), 3s);
  for (int round = 0; round < 5; ++round) {
    this->world->pass(4s);
    EXPECT_EQ(locks.idle_wait(), 0s);
    EXPECT_FALSE(locks.run_once());
  }
  EXPECT_GE(mine->until(), first_end + 20s);
  EXPECT_FALSE(this->two->locks->try_acquire("report"));
  EXPECT_TRUE(this->two->locks->try_acquire("lazy"));
  mine->release();
  this->world->pass(4s);
  locks.run_once();
  EXPECT_TRUE(this->two->locks->try_acquire("report")) << "a released lock is not renewed";
  EXPECT_EQ(this->one->log.count("lock_lost"), 0u) << "and nobody calls it lost";
}

// Proves G2
TYPED_TEST(lock_conformance, tells_its_owner_that_the_loop_has_found_it_lost) {
  auto& locks = *this->one->locks;
  std::vector<lock_loss> losses;
  const auto note = [&](const std::string&, lock_loss why) {
    losses.push_back(why);
    throw std::runtime_error("a callback that throws");
  };
  auto renewed = locks.try_acquire("renewed", {.ttl = 9s, .renew = true, .on_lost = note});
  auto watched = locks.try_acquire("watched", {.ttl = 60s, .on_lost = note});
  this->world->pass(10s);
  auto next = this->two->locks->try_acquire("renewed", {.ttl = 9s});
  ASSERT_TRUE(next);
  locks.run_once();
  EXPECT_EQ(losses, std::vector{lock_loss::taken});
  this->world->pass(60s);
  locks.run_once();
  locks.run_once();
  EXPECT_EQ(losses, (std::vector{lock_loss::taken, lock_loss::expired}));
  EXPECT_TRUE(watched->lost());
  EXPECT_EQ(this->one->log.count("lock_callback_failed"), 2u);
}

// Proves G2
TYPED_TEST(lock_conformance, a_clock_that_is_set_back_stops_neither_renewal_nor_the_word_of_a_loss) {
  auto& locks = *this->one->locks;
  std::vector<lock_loss> losses;
  const auto note = [&](const std::string&, lock_loss why) { losses.push_back(why); };
  auto renewed = locks.try_acquire("renewed", {.ttl = 9s, .renew = true, .on_lost = note});
  auto watched = locks.try_acquire("watched", {.ttl = 60s, .on_lost = note});
  this->world->time.advance(-1h);
  EXPECT_EQ(locks.idle_wait(), 0s);
  locks.run_once();
  EXPECT_EQ(renewed->until(), this->world->time.now() + 9s);
  EXPECT_EQ(locks.idle_wait(), 3s) << "not again at once";
  for (int round = 0; round < 3; ++round) {
    this->world->pass(4s);
    locks.run_once();
  }
  EXPECT_FALSE(this->two->locks->try_acquire("renewed"));
  EXPECT_TRUE(losses.empty());
  renewed->release();
  this->world->pass(60s);
  locks.run_once();
  EXPECT_EQ(losses, std::vector{lock_loss::expired});
  EXPECT_TRUE(watched->lost());
}

// Proves G2
TYPED_TEST(lock_conformance, is_waited_for_and_got_when_it_is_free) {
  auto mine = this->one->locks->try_acquire("report");
  bool got = false;
  std::jthread waiting([&] { got = bool(this->two->locks->acquire("report", 60s)); });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(mine->release(), release_outcome::released);
  waiting.join();
  EXPECT_TRUE(got);
}

// Proves G2
TYPED_TEST(lock_conformance, of_many_who_ask_first_for_a_name_one_has_it_and_the_others_are_told) {
  constexpr int threads = 8, names = 100;
  std::atomic<int> taken = 0, failed = 0;
  std::barrier together(threads);
  const auto ask = [&] {
    for (int n = 0; n < names; ++n) {
      together.arrive_and_wait();
      const auto code = code_of([&] {
        const auto mine = this->one->locks->try_acquire("new " + std::to_string(n));
        taken += mine ? 1 : 0;
        together.arrive_and_wait();  // nobody releases it before all have asked
      });
      if (!code) continue;
      ++failed;
      together.arrive_and_wait();
    }
  };
  {
    std::vector<std::jthread> all;
    for (int n = 0; n < threads; ++n) all.emplace_back(ask);
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(taken, names);
}

// Proves G2
TYPED_TEST(lock_conformance, is_not_waited_for_longer_than_was_said) {
  auto mine = this->one->locks->try_acquire("report");
  const auto started = std::chrono::steady_clock::now();
  auto others = this->two->locks->acquire("report", 50ms);
  EXPECT_GE(std::chrono::steady_clock::now() - started, 50ms);
  ASSERT_FALSE(others);
  EXPECT_EQ(others.holder().token, mine->token());

  std::stop_source stop;
  std::optional<errc> ended;
  std::jthread waiting(
      [&] { ended = code_of([&] { this->two->locks->acquire("report", 60s, {}, stop.get_token()); }); });
  std::this_thread::sleep_for(20ms);
  stop.request_stop();
  waiting.join();
  EXPECT_EQ(ended, errc::cancelled);
}

// Proves G2
TYPED_TEST(lock_conformance, is_waited_for_for_ever_if_that_was_said_and_not_at_all_if_less_than_nothing) {
  auto mine = this->one->locks->try_acquire("report");
  EXPECT_FALSE(this->two->locks->acquire("report", duration::min()));
  bool got = false;
  std::jthread waiting([&] { got = bool(this->two->locks->acquire("report", duration::max())); });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(mine->release(), release_outcome::released);
  waiting.join();
  EXPECT_TRUE(got);
}

// Proves G2
TYPED_TEST(lock_conformance, its_time_to_live_ends_by_itself) {
  auto real = this->world->open({.real_time = true});
  const auto started = std::chrono::steady_clock::now();
  auto mine = real->locks->try_acquire("report", {.ttl = 100ms});
  auto next = real->locks->acquire("report", 60s);
  ASSERT_TRUE(next);
  EXPECT_GE(std::chrono::steady_clock::now() - started, 90ms);
  EXPECT_FALSE(mine->renew());
}

// Proves G2
TYPED_TEST(lock_conformance, a_background_loop_keeps_it) {
  auto real = this->world->open({.real_time = true});
  background loop(*real->locks);
  auto mine = real->locks->try_acquire("report", {.ttl = 3s, .renew = true});
  std::this_thread::sleep_for(4s);
  EXPECT_FALSE(this->world->open({.real_time = true})->locks->try_acquire("report"));
  EXPECT_EQ(mine->release(), release_outcome::released);
}

TYPED_TEST(lock_conformance, names_and_times_have_bounds) {
  auto& locks = *this->one->locks;
  EXPECT_EQ(code_of([&] { locks.try_acquire(""); }), errc::invalid_name);
  EXPECT_EQ(code_of([&] { locks.try_acquire("a\nb"); }), errc::invalid_name);
  EXPECT_EQ(code_of([&] { locks.try_acquire(std::string(256, 'x')); }), errc::invalid_name);
  EXPECT_EQ(code_of([&] { locks.try_acquire("x", {.ttl = 0s}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { locks.try_acquire("x", {.ttl = 25h}); }), errc::invalid_argument);
  auto odd = locks.try_acquire("{} '%s\\ ü:epoch");
  auto near = locks.try_acquire("{} '%s\\ ü");
  EXPECT_TRUE(odd);
  EXPECT_TRUE(near) << "the name of one is not the key of another's epoch";
}

}  // namespace
}  // namespace settle::test
