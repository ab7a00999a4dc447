// Relays and members of groups whose process was killed: whoever comes after them takes over at once, and
// waits for the lease of those that are only stopped. Leases here are longer than every patience.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "settle/postgres.hpp"
#include "sql/ownership.hpp"
#include "support/child_process.hpp"
#include "support/daemon_process.hpp"
#include "support/databases.hpp"
#include "support/order_world.hpp"
#include "support/postgres_fixture.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

class gone_members : public ::testing::TestWithParam<dialect> {
 protected:
  static constexpr duration lease = 10min;

  void SetUp() override {
    if (GetParam() == dialect::sqlite) return;
    if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    server.emplace();
  }

  world_options options(bool real_time = true) const {
    return {.lease_ttl = lease, .real_time = real_time, .orders = server ? server->conninfo() : ""};
  }

  static std::int64_t shipped(order_world& in) {
    return in.warehouse().read().execute("select count(*) from shipments")[0][0].integer();
  }

  // A process that has brought the first order to the warehouse, and then does `next`.
  child_process owner(pipe_signal& ready, const std::function<void()>& next, bool real_time = true) const {
    return child_process([&] {
      order_world world(dir, options(real_time));
      world.place(1);
      while (shipped(world) < 1) world.drain();
      ready.announce();
      next();
      return 0;
    });
  }

  static bool ships(order_world& in, std::int64_t orders) {
    return eventually([&] {
      in.drain();
      return shipped(in) == orders;
    });
  }

  temp_dir dir;
  std::optional<scratch_database> server;
};

// Proves O4
TEST_P(gone_members, that_were_killed_are_replaced_at_once) {
  pipe_signal ready;
  auto killed = owner(ready, [] { ::pause(); });
  ready.await();
  killed.kill();
  order_world next(dir, options());
  next.place(2);
  EXPECT_TRUE(ships(next, 2));
}

// Proves O4
TEST_P(gone_members, that_were_killed_are_replaced_by_those_who_were_waiting) {
  pipe_signal ready;
  auto killed = owner(ready, [] { ::pause(); });
  ready.await();
  order_world waiting(dir, options());
  waiting.place(2);
  waiting.drain();
  EXPECT_EQ(shipped(waiting), 1) << "all is another one's";
  killed.kill();
  EXPECT_TRUE(ships(waiting, 2));
}

// Proves O4
TEST_P(gone_members, that_were_stopped_are_waited_for) {
  pipe_signal ready;
  auto stopped = owner(ready, [] { ::raise(SIGSTOP); }, false);
  ready.await();
  stopped.await_stop();
  order_world next(dir, options(false));
  next.place(2);
  for (duration waited{}; waited < lease - 1min; waited += 30s) {
    next.drain();
    next.time().advance(30s);
  }
  EXPECT_EQ(shipped(next), 1) << "it may go on, and its lease has not ended";
  next.time().advance(lease);
  EXPECT_TRUE(ships(next, 2));
}

// Proves O4
TEST_P(gone_members, that_left_make_room_for_those_who_were_waiting) {
  order_world world(dir, options());
  auto waiting = world.make_relay();
  auto group = world.make_consumer({.name = "warehouse"});
  world.place(1);
  world.drain();
  EXPECT_EQ(shipped(world), 1);
  waiting->run_once();
  group->run_once();
  world.place(2);
  world.relay().leave();
  world.consumer().leave();
  EXPECT_TRUE(eventually([&] {
    waiting->run_once();
    group->run_once();
    return shipped(world) == 2;
  }));
}

struct gone_sessions : gone_members {};

// A session that the server has ended proves nothing about the process, which shows itself again. Proves O4
TEST_P(gone_sessions, that_come_again_go_on) {
  order_world world(dir, options());
  world.place(1);
  ASSERT_TRUE(ships(world, 1));
  server->run(
      "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() "
      "and pid in (select pid from pg_locks where locktype = 'advisory')");
  world.place(2);
  EXPECT_TRUE(ships(world, 2));
}

// Behind a pooler in transaction mode there is no session of one's own: leases decide. Proves O4
TEST_P(gone_sessions, are_not_claimed_where_sessions_are_shared) {
  const auto db = postgres::open(server->conninfo(), {.prepared_statements = false});
  migrate(*db);
  sql::ownership member(*db, {"test", 4, lease});
  EXPECT_TRUE(member.due());
  EXPECT_EQ(member.member().find('@'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(databases, gone_members, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });
INSTANTIATE_TEST_SUITE_P(databases, gone_sessions, ::testing::Values(dialect::postgres),
                         [](const auto&) { return "postgres"; });

}  // namespace
}  // namespace settle::test
