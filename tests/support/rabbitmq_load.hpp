// A world under load whose broker is RabbitMQ, for tests of what happens to the server meanwhile.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/lanes.hpp"
#include "rabbitmq/topology.hpp"
#include "settle/driver/broker.hpp"
#include "settle/rabbitmq.hpp"
#include "support/order_world.hpp"
#include "support/postgres_fixture.hpp"
#include "support/producers.hpp"
#include "support/rabbitmq_fixture.hpp"

namespace settle::test {

// Tests with the label `long` say how long a disturbance lasts.
inline std::chrono::seconds lasting(std::chrono::seconds as_a_rule) {
  const char* asked = std::getenv("SETTLE_OUTAGE_SECONDS");
  return asked == nullptr ? as_a_rule : std::chrono::seconds(std::stoi(asked));
}

struct rabbitmq_under_load : ::testing::Test {
  void SetUp() override {
    if (const auto missing = rabbitmq_missing(); !missing.empty()) GTEST_SKIP() << missing;
    url = rabbitmq_url();
  }

  static constexpr int queues = 2;
  rabbitmq::options broker_options(const environment& env) const {
    return {.env = env,
            .connect_timeout = std::chrono::seconds(2),
            .heartbeat = std::chrono::seconds(1),
            .queues = queues,
            .prefix = corner.prefix(),
            .balance_every = std::chrono::milliseconds(200)};
  }
  world_options options() {
    return {.lease_ttl = std::chrono::seconds(2),
            .real_time = true,
            .broker = [this](const environment& env) { return rabbitmq::open(url, broker_options(env)); }};
  }
  void create_group(const std::string& group) const {
    rabbitmq::open(url, broker_options({}))->subscribe({group, {"orders"}})->leave();
  }

  // Its relay and consumer run by themselves, until they are told otherwise.
  struct running {
    explicit running(rabbitmq_under_load& of)
        : world(of.dir, of.options()), load(world), relaying(world.relay()), consuming(world.consumer()) {
      await([&] { return world.consumer().counts().applied > 50; });
    }

    // More load, until everything is applied, apart from so many.
    void finish(std::int64_t missing = 0) {
      const auto placed = load.placed.load();
      await([&] { return load.placed > placed + 100; });
      load.stop();
      await([&] { return shipped(world) >= load.placed - missing; });
      relaying.reset();
      consuming.reset();
    }

    order_world world;
    producers load;
    std::optional<background> relaying, consuming;
  };

  // Load, then `disturb` with its end, then more load, until everything is applied.
  void survive(const std::function<void(order_world&)>& disturb) {
    create_group("warehouse");
    running system(*this);
    disturb(system.world);
    system.finish();
    expect_unharmed(system.world, system.load.placed, [](const auto& report) { return report.clean(); });
  }

  // Takes everything that waits for a group. Gives the payloads of each key in the order in which they came
  // for the first time.
  std::map<std::string, std::vector<std::string>> received(broker& from, const std::string& group) const {
    std::map<std::string, std::vector<std::string>> all;
    std::set<std::string> seen;
    const auto reading = from.subscribe({group, {"orders"}});
    for (int quiet = 0; quiet < 20; ++quiet) {
      std::vector<delivery_tag> done;
      for (const auto& one : reading->fetch(1000).deliveries) {
        done.push_back(one.tag);
        if (seen.insert(one.content.id).second) all[one.content.key].push_back(one.content.payload);
      }
      if (done.empty()) {
        reading->arrivals().wait(std::chrono::milliseconds(50), {});
        continue;
      }
      quiet = 0;
      reading->acknowledge(done);
    }
    reading->leave();
    return all;
  }

  static std::size_t complaints(order_world& world) {
    return world.log().count("consumer_paused") + world.log().count("relay_paused") +
           world.log().count("service_failed") + world.log().count("broker_connection_lost");
  }

  // What somebody else does with the server's own tools.
  template <class Method>
  void tell_server(amqp_method_number_t which, const Method& what) const {
    const auto within = rabbitmq::limit::within(std::chrono::seconds(30));
    rabbitmq::connection on(rabbitmq::parse_url(url), {}, "settle test", within);
    rabbitmq::channel(on, within).call(which, what, within);
  }
  void delete_queue(const std::string& name) const {
    amqp_queue_delete_t what{};
    what.queue = rabbitmq::as_bytes(name);
    tell_server(AMQP_QUEUE_DELETE_METHOD, what);
  }
  void delete_exchange(const std::string& name) const {
    amqp_exchange_delete_t what{};
    what.exchange = rabbitmq::as_bytes(name);
    tell_server(AMQP_EXCHANGE_DELETE_METHOD, what);
  }

  rabbitmq::names names() const { return {corner.prefix()}; }
  std::string queue_of(const std::string& key) const {
    return names().queue("warehouse", "orders", lane_of(key, {}) % queues);
  }
  std::int64_t ready_in(const std::string& queue) const {
    const auto within = rabbitmq::limit::within(std::chrono::seconds(30));
    rabbitmq::connection on(rabbitmq::parse_url(url), {}, "settle test", within);
    return rabbitmq::topology(on, names()).look_at(queue, within).value().ready;
  }

  std::string url;
  temp_dir dir;
  scratch_broker corner;
};

// The test has the server to itself.
struct rabbitmq_of_its_own : rabbitmq_under_load {
  void start(const std::string& settings = {}) {
    server.emplace("rabbitmq", settings);
    url = server->rabbitmq_url();
  }
  std::optional<private_server> server;
};

}  // namespace settle::test
