// A part of a running system goes away under load, for longer than leases live, and comes back. PostgreSQL is
// away when its server is stopped; a file, the embedded broker's among them, when another process holds its
// write lock and does not let go; a broker in memory when it is told to refuse every call.
//
// It lasts SETTLE_OUTAGE_SECONDS; `make test-all` runs the same with a minute.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "settle/dead_letter.hpp"
#include "settle/error.hpp"
#include "settle/outbox.hpp"
#include "support/lock_holder.hpp"
#include "support/order_world.hpp"
#include "support/postgres_fixture.hpp"
#include "support/producers.hpp"
#include "support/scenario_broker.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

enum class part { orders, broker, warehouse };

struct outage_case {
  part away;
  dialect on;
  broker_kind broker = broker_kind::embedded;
};

std::string name_of(const outage_case& one) {
  const std::string on = one.on == dialect::sqlite ? "on_sqlite" : "on_postgres";
  if (one.away == part::orders) return "the_producers_database_" + on;
  if (one.away == part::warehouse) return "the_consumers_database_" + on;
  return (one.broker == broker_kind::embedded ? "the_broker_" : "the_" + name_of(one.broker) + "_") + on;
}

void PrintTo(const outage_case& one, std::ostream* out) { *out << name_of(one); }

std::chrono::seconds how_long() {
  const char* asked = std::getenv("SETTLE_OUTAGE_SECONDS");
  return std::chrono::seconds(asked == nullptr ? 6 : std::stoi(asked));
}

class outage : public ::testing::TestWithParam<outage_case> {
 protected:
  void SetUp() override {
    if (GetParam().on == dialect::postgres)
      if (const auto missing = postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    const auto [away, on, kind] = GetParam();
    if (kind == broker_kind::embedded && (on == dialect::sqlite || away == part::broker))
      holder.emplace(dir.file(away == part::orders   ? "orders.db"
                              : away == part::broker ? "broker.db"
                                                     : "warehouse.db"));
    if (on == dialect::postgres) {
      if (away != part::broker) server.emplace();
      orders.emplace(away == part::orders ? server->conninfo() : postgres_conninfo());
      warehouse.emplace(away == part::warehouse ? server->conninfo() : postgres_conninfo());
    }
  }

  world_options options() {
    return broker.with({.lease_ttl = lease_ttl,
                        .real_time = true,
                        .busy_timeout = 300ms,
                        .orders = orders ? orders->conninfo() : "",
                        .warehouse = warehouse ? warehouse->conninfo() : ""});
  }

  void begins() {
    if (broker.in_memory() != nullptr)
      broker.in_memory()->be_away();
    else if (holder)
      holder->take();
    else
      server->command("stop postgres");
  }
  void ends() {
    if (broker.in_memory() != nullptr)
      broker.in_memory()->be_away(false);
    else if (holder)
      holder->release();
    else
      server->command("start postgres");
  }

  // Somebody has noticed it.
  static std::size_t complaints(order_world& world) {
    return world.log().count("consumer_paused") + world.log().count("relay_paused") +
           world.log().count("service_failed");
  }

  static constexpr duration lease_ttl = 2s;
  temp_dir dir;
  scenario_broker broker{GetParam().broker, {"warehouse"}, lease_ttl};
  std::optional<lock_holder> holder;
  std::optional<private_server> server;
  std::optional<scratch_database> orders, warehouse;
};

// Proves C1, C3, C8, O3, O4
TEST_P(outage, under_load_ends_without_failed_events_dead_letters_or_disorder) {
  order_world world(dir, options());
  producers load(world);
  {
    background relaying(world.relay());
    background consuming(world.consumer());
    await([&] { return world.consumer().counts().applied > 100; });
    const auto before = complaints(world);
    begins();
    std::this_thread::sleep_for(how_long());
    ends();
    EXPECT_GT(complaints(world), before) << "nothing was away";
    const auto placed = load.placed.load();
    await([&] { return load.placed > placed + 300; });
    load.stop();
    await([&] { return shipped(world) >= load.placed; });
  }
  expect_unharmed(world, load.placed, [&](const auto& report) { return broker.is_intact(report); });
}

INSTANTIATE_TEST_SUITE_P(
    of, outage,
    ::testing::Values(outage_case{part::orders, dialect::sqlite}, outage_case{part::broker, dialect::sqlite},
                      outage_case{part::warehouse, dialect::sqlite},
                      outage_case{part::orders, dialect::postgres},
                      outage_case{part::broker, dialect::postgres},
                      outage_case{part::warehouse, dialect::postgres},
                      outage_case{part::broker, dialect::sqlite, broker_kind::log_in_memory},
                      outage_case{part::broker, dialect::sqlite, broker_kind::queue_in_memory}),
    [](const auto& of) { return name_of(of.param); });

}  // namespace
}  // namespace settle::test
