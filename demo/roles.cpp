#include "roles.hpp"

#include <memory>
#include <string>

#include "orders.hpp"
#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "storm_broker.hpp"
#include "termination.hpp"

namespace storm {
namespace {

constexpr auto lease = std::chrono::seconds(1);  // short, so that take-overs happen while you watch

// Delivers some messages twice, as every broker may.
class duplicating_publisher final : public settle::publisher {
 public:
  duplicating_publisher(settle::publisher& to, std::uint64_t seed) : to_(to), random_(seed) {}

  std::vector<settle::publish_result> publish(std::span<const settle::message> batch,
                                              const settle::call_limits& limits) override {
    auto results = to_.publish(batch, limits);
    std::vector<settle::message> again;
    for (const auto& m : batch)
      if (random_.below(10) == 0) again.push_back(m);
    if (!again.empty()) to_.publish(again, limits);
    return results;
  }

 private:
  settle::publisher& to_;
  settle::testing::seeded_random random_;
};

}  // namespace

void prepare(const settings& of) {
  create_orders(*settle::sqlite::open(of.data + "/orders.db"));
  create_shipments(*settle::sqlite::open(of.data + "/warehouse.db"));
  prepare_group(*open_storm_broker(of), of.broker);
}

void run_producer(const settings& of, int index) {
  const auto db = settle::sqlite::open(of.data + "/orders.db");
  for (int number = index; number < of.orders; number += producers) {
    const auto what = make_order(of, number);
    while (true) {
      try {
        place(*db, what);
        break;
      } catch (const settle::error& e) {
        if (e.code() == settle::errc::constraint_violated) break;  // committed before we were killed
        if (!e.retryable()) throw;
      }
    }
  }
}

void run_relay(const settings& of, int index) {
  const termination asked;
  const auto db = settle::sqlite::open(of.data + "/orders.db");
  const auto broker = open_storm_broker(of);
  duplicating_publisher destination(broker->publishing(), of.seed + static_cast<std::uint64_t>(index));
  settle::relay relay(*db, destination, {.source = "/orders", .batch_max = 100, .lease_ttl = lease});
  settle::background loop(relay);
  asked.wait();
}

void run_consumer(const settings& of, int) {
  const termination asked;
  const auto db = settle::sqlite::open(of.data + "/warehouse.db");
  const auto broker = open_storm_broker(of);
  settle::consumer warehouse(*db, *broker, {.name = "warehouse"});
  ship_orders(warehouse);
  settle::background loop(warehouse);
  asked.wait();
}

}  // namespace storm
