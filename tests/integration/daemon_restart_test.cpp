// The daemon is killed and started again on the same folder: it does not wait for its own old lease.
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>

#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"
#include "support/daemon_process.hpp"
#include "support/databases.hpp"
#include "support/postgres_fixture.hpp"
#include "support/temp_dir.hpp"

namespace settle::daemon {
namespace {

using test::eventually;
using test::get;
using test::program;

class restarted_daemon : public ::testing::TestWithParam<dialect> {
 protected:
  void SetUp() override {
    if (GetParam() == dialect::sqlite) return;
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    server_.emplace();
  }

  // With leases that outlast every patience.
  std::unique_ptr<program> start() {
    std::vector<std::string> with{"--data",   dir_.file("data"), "--relay-lease-ttl",  "1h",
                                  "--listen", "127.0.0.1:0",     "--broker-lease-ttl", "1h"};
    if (server_) with.insert(with.end(), {"--database", server_->conninfo()});
    auto running = std::make_unique<program>(SETTLED, with, dir_.file("settled" + std::to_string(++started_)),
                                             test::surroundings{});
    EXPECT_TRUE(running->logs(" info ready ")) << running->log();
    return running;
  }

  void publish_one() {
    const auto db = server_ ? postgres::open(server_->conninfo()) : sqlite::open(dir_.file("data/settle.db"));
    auto tx = db->begin();
    publish(tx, event{.topic = "orders", .type = "order.placed", .key = "1"});
    tx.commit();
  }

  static bool has_published_one(const program& running) {
    return eventually([&] {
      return get(running.port(), "/metrics").body.find("\nsettle_relay_published_total 1\n") !=
             std::string::npos;
    });
  }

 private:
  test::temp_dir dir_;
  std::optional<test::scratch_database> server_;
  int started_ = 0;
};

// Proves O4
TEST_P(restarted_daemon, relays_at_once_after_it_was_killed) {
  auto first = start();
  publish_one();
  ASSERT_TRUE(has_published_one(*first)) << first->log();
  first->end(SIGKILL);
  const auto second = start();
  publish_one();
  EXPECT_TRUE(has_published_one(*second)) << second->log();
}

INSTANTIATE_TEST_SUITE_P(databases, restarted_daemon, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle::daemon
