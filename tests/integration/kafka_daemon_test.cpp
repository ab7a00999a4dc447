// The programs with a Kafka as the broker: settled relays to it, settle looks into it.
#include "settle/kafka.hpp"
#include "support/broker_daemon.hpp"
#include "support/kafka_fixture.hpp"
#include "support/tcp_proxy.hpp"

namespace settle::test {
namespace {

class kafka_daemon : public broker_daemon {
 protected:
  void SetUp() override {
    if (const auto missing = kafka_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  std::string settings() const override {
    return "prefix = \"" + corner.prefix() +
           "\"\npartitions = 2\nthrough = \"127.0.0.1:" + std::to_string(line.port()) + "\"\n";
  }
  std::unique_ptr<broker> open() const override {
    return kafka::open(kafka_url(), {.partitions = 2, .prefix = corner.prefix()});
  }

  kafka_corner corner;
  tcp_proxy line{"127.0.0.1", kafka_port(kafka_url())};
};

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Proves O7, O10
TEST_F(kafka_daemon, relays_to_the_cluster_that_its_file_names_and_settle_looks_into_it) {
  const auto running = start(kafka_url());
  expect_ready(*running);
  const auto at = listen();
  for (int n = 0; n < 3; ++n) publish(n);
  EXPECT_EQ(arrived(*at, 3), (std::vector<std::string>{"0", "1", "2"}));
  std::string metrics;
  EXPECT_TRUE(eventually([&] {
    metrics = get(running->port(), "/metrics").body;
    return holds(metrics, R"(group="warehouse",topic="orders",partition=)") &&
           holds(metrics,
                 R"(settle_broker_group_lag_messages{broker="main",group="warehouse",topic="orders"} 3)");
  })) << metrics;
  const auto status = settle({"status"});
  EXPECT_EQ(status.code, 0) << status.out << status.err;
  EXPECT_TRUE(holds(status.out, "main")) << status.out;
  EXPECT_TRUE(holds(settle({"status", "--json"}).out, "\"partitions\""));
  const auto tail = settle({"tail", "orders", "--last", "3"});
  EXPECT_EQ(tail.code, 0) << tail.err;
  const auto verified = settle({"verify"});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  EXPECT_TRUE(holds(settle({"group", "list"}).out, "warehouse")) << "the prefix is of the file";
  const auto removal = settle({"group", "remove", "warehouse", "--yes"});
  EXPECT_EQ(removal.code, 2) << removal.out;
  EXPECT_TRUE(holds(removal.err, "that are alive")) << removal.err;
  at->leave();
  EXPECT_EQ(settle({"group", "remove", "warehouse", "--yes"}).code, 0);
  EXPECT_FALSE(holds(settle({"group", "list"}).out, "warehouse"));
  EXPECT_EQ(running->end(SIGTERM).code, 0);
}

// Proves O7
TEST_F(kafka_daemon, is_not_ready_while_the_server_is_away_and_goes_on_when_it_is_back) {
  const auto running = start(kafka_url());
  expect_ready(*running);
  const auto at = listen();
  line.arm(tcp_proxy::to_client, tcp_proxy::stall, 0);
  publish(1);
  EXPECT_TRUE(eventually([&] { return get(running->port(), "/readyz").status == 503; }));
  line.disarm();
  EXPECT_EQ(arrived(*at, 1), std::vector<std::string>{"1"});
  expect_ready(*running);
  at->leave();
}

}  // namespace
}  // namespace settle::test
