// A world under load whose broker is Kafka.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "settle/kafka.hpp"
#include "support/broker_load.hpp"
#include "support/kafka_fixture.hpp"
#include "support/postgres_fixture.hpp"

namespace settle::test {

struct kafka_under_load : broker_under_load {
  void SetUp() override {
    if (const auto missing = kafka_missing(); !missing.empty()) GTEST_SKIP() << missing;
    use(kafka_url());
  }
  void use(const std::string& server) {
    with.connect_timeout = std::chrono::seconds(2);
    with.partitions = 3;
    with.session_timeout = std::chrono::seconds(2);
    corner.emplace(server);
    with.prefix = corner->prefix();
    url = server;
  }

  std::unique_ptr<broker> open(const environment& env) const override {
    auto options = with;
    options.env = env;
    return kafka::open(url, options);
  }

  // Every connection goes through this line.
  tcp_proxy& behind_a_line() {
    line.emplace("127.0.0.1", kafka_port(url));
    with.through = "127.0.0.1:" + std::to_string(line->port());
    return *line;
  }

  std::string url;
  kafka::options with;
  std::optional<kafka_corner> corner;
  std::optional<tcp_proxy> line;
};

// The test has the servers to itself.
struct kafka_of_its_own : kafka_under_load {
  void start(const std::string& which = "kafka") {
    server.emplace(which);
    use(which == "kafka" ? server->kafka_url() : server->kafka_cluster_url());
  }
  void TearDown() override {
    corner.reset();  // before its server
    kafka_under_load::TearDown();
  }
  std::optional<private_server> server;
};

}  // namespace settle::test
