// A world under load whose broker is RabbitMQ.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/lanes.hpp"
#include "rabbitmq/topology.hpp"
#include "settle/rabbitmq.hpp"
#include "support/broker_load.hpp"
#include "support/postgres_fixture.hpp"
#include "support/rabbitmq_fixture.hpp"

namespace settle::test {

struct rabbitmq_under_load : broker_under_load {
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
  std::unique_ptr<broker> open(const environment& env) const override {
    return rabbitmq::open(url, broker_options(env));
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
