// A corner of a Kafka, behind a proxy.
#pragma once

#include <thread>

#include "conformance/broker_suite.hpp"
#include "settle/metrics.hpp"
#include "support/kafka_fixture.hpp"
#include "support/quiet_log.hpp"
#include "support/tcp_proxy.hpp"

namespace settle::test {

// Who is silent for too long is one that does not fetch. Its library goes on by itself, and leaves the group
// when it has not been asked for anything for long enough.
class kafka_storage final : public broker_storage {
 public:
  std::unique_ptr<broker> open(int partitions) override {
    auto with = options();
    with.partitions = partitions;
    return kafka::open(kafka_url(), with);
  }
  kafka::options options() {
    environment env;
    env.log = &log_;
    env.counters = &counters_;
    kafka::options made{.env = env};
    made.session_timeout = std::chrono::milliseconds(1500);
    made.silence_max = std::chrono::milliseconds(3500);
    made.prefix = corner_.prefix();
    made.through = "127.0.0.1:" + std::to_string(proxy_.port());
    return made;
  }

  void pass_a_heartbeat() override { std::this_thread::sleep_for(std::chrono::milliseconds(600)); }
  void outlive_leases() override { std::this_thread::sleep_for(std::chrono::milliseconds(4700)); }
  bool hang(bool hanging) override {
    if (hanging)
      proxy_.arm(tcp_proxy::to_client, tcp_proxy::stall, 0);
    else
      proxy_.disarm();
    return true;
  }
  duration quiet_time() const override { return std::chrono::milliseconds(2000); }

  metrics& counters() { return counters_; }
  quiet_log& log() { return log_; }
  const kafka_corner& corner() const { return corner_; }
  tcp_proxy& line() { return proxy_; }

 private:
  kafka_corner corner_;
  tcp_proxy proxy_{"127.0.0.1", kafka_port(kafka_url())};
  quiet_log log_;
  metrics counters_;
};

}  // namespace settle::test
