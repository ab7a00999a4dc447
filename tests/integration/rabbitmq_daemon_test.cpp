// The programs with a RabbitMQ as the broker: settled relays to it, settle looks into it.
#include "settle/rabbitmq.hpp"
#include "support/broker_daemon.hpp"
#include "support/rabbitmq_fixture.hpp"
#include "support/tcp_proxy.hpp"

namespace settle::test {
namespace {

class rabbitmq_daemon : public broker_daemon {
 protected:
  void SetUp() override {
    if (const auto missing = rabbitmq_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  std::string settings() const override { return "prefix = \"" + corner.prefix() + "\"\nqueues = 2\n"; }
  std::unique_ptr<broker> open() const override {
    return rabbitmq::open(rabbitmq_url(), {.queues = 2, .prefix = corner.prefix()});
  }

  scratch_broker corner;
};

std::string password_of(const std::string& url) {
  const auto colon = url.find(':', url.find("://") + 3);
  return url.substr(colon + 1, url.find('@') - colon - 1);
}

// Proves O7, O10
TEST_F(rabbitmq_daemon, relays_to_the_server_that_its_file_names_and_settle_looks_into_it) {
  const auto running = start(rabbitmq_url());
  expect_ready(*running);
  const auto at = listen();
  for (int n = 0; n < 3; ++n) publish(n);
  EXPECT_EQ(arrived(*at, 3), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_TRUE(eventually([&] {
    return get(running->port(), "/metrics").body.find("settle_broker_group_lag_messages{broker=\"main\",") !=
           std::string::npos;
  }));
  const auto status = settle({"status"});
  EXPECT_EQ(status.code, 0) << status.out << status.err;
  EXPECT_NE(status.out.find("main"), std::string::npos) << status.out;
  for (const auto& text :
       {running->log(), status.out, get(running->port(), "/metrics").body, settle({"group", "list"}).out})
    EXPECT_EQ(text.find(password_of(rabbitmq_url())), std::string::npos) << text;
  EXPECT_NE(settle({"group", "list"}).out.find("warehouse"), std::string::npos)
      << "the prefix is of the file";
  const auto removal = settle({"group", "remove", "warehouse", "--yes"});
  EXPECT_EQ(removal.code, 2) << removal.out;
  EXPECT_NE(removal.err.find("that are alive"), std::string::npos) << removal.err;
  EXPECT_EQ(running->end(SIGTERM).code, 0);
}

// Proves O7
TEST_F(rabbitmq_daemon, is_not_ready_while_the_server_is_away_and_goes_on_when_it_is_back) {
  tcp_proxy line("127.0.0.1", port_of(rabbitmq_url()));
  const auto running = start(with_port(rabbitmq_url(), line.port()));
  expect_ready(*running);
  const auto at = listen();
  line.arm(tcp_proxy::to_client, tcp_proxy::stall, 0);
  publish(1);
  answer last;
  EXPECT_TRUE(eventually([&] {
    last = get(running->port(), "/readyz");
    return last.status == 503;
  }));
  EXPECT_EQ(last.body.find(password_of(rabbitmq_url())), std::string::npos) << last.body;
  line.disarm();
  EXPECT_EQ(arrived(*at, 1), std::vector<std::string>{"1"});
  expect_ready(*running);
}

}  // namespace
}  // namespace settle::test
