// The programs with a RabbitMQ as the broker: settled relays to it, settle looks into it.
#include <gtest/gtest.h>
#include <signal.h>

#include <map>

#include "settle/driver/broker.hpp"
#include "settle/publish.hpp"
#include "settle/rabbitmq.hpp"
#include "settle/sqlite.hpp"
#include "support/daemon_process.hpp"
#include "support/rabbitmq_fixture.hpp"
#include "support/tcp_proxy.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {
namespace {

class rabbitmq_daemon : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = rabbitmq_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }

  // A service `orders`, whose broker `main` is at this URL. It has a password, so it comes from a file.
  std::unique_ptr<program> start(const std::string& url) {
    write_file(dir.file("url"), url + "\n");
    write_file(dir.file("settled.toml"),
               "[broker.main]\nurl_file = \"" + dir.file("url") + "\"\nprefix = \"" + corner.prefix() +
                   "\"\nqueues = 2\n[service.orders]\ndatabase = \"" + dir.file("orders.db") + "\"\n");
    return std::make_unique<program>(SETTLED,
                                     std::vector<std::string>{"--config", dir.file("settled.toml"), "--data",
                                                              dir.file("data"), "--listen", "127.0.0.1:0"},
                                     dir.file("settled"), surroundings{});
  }

  outcome settle(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--config", dir.file("settled.toml")});
    return program(SETTLE_CLI, std::move(arguments), dir.file("settle"), {}).end();
  }

  std::unique_ptr<subscription> listen() {
    broker = rabbitmq::open(rabbitmq_url(), {.queues = 2, .prefix = corner.prefix()});
    return broker->subscribe({.group = "warehouse", .topics = {"orders"}});
  }

  void publish(int number) const {
    const auto db = sqlite::open(dir.file("orders.db"));
    auto tx = db->begin();
    settle::publish(tx, {.topic = "orders", .type = "placed", .key = "k", .payload = std::to_string(number)});
    tx.commit();
  }

  static std::vector<std::string> arrived(subscription& at, std::size_t count) {
    std::vector<std::string> payloads;
    EXPECT_TRUE(eventually([&] {
      for (auto& one : at.fetch(100).deliveries) payloads.push_back(one.content.payload);
      return payloads.size() >= count;
    })) << payloads.size();
    return payloads;
  }

  scratch_broker corner;
  temp_dir dir;
  std::unique_ptr<settle::broker> broker;
};

std::string password_of(const std::string& url) {
  const auto colon = url.find(':', url.find("://") + 3);
  return url.substr(colon + 1, url.find('@') - colon - 1);
}

// Proves O7, O10
TEST_F(rabbitmq_daemon, relays_to_the_server_that_its_file_names_and_settle_looks_into_it) {
  const auto running = start(rabbitmq_url());
  ASSERT_TRUE(eventually([&] { return get(running->port(), "/readyz").status == 200; })) << running->log();
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
  ASSERT_TRUE(eventually([&] { return get(running->port(), "/readyz").status == 200; })) << running->log();
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
  EXPECT_TRUE(eventually([&] { return get(running->port(), "/readyz").status == 200; })) << running->log();
}

}  // namespace
}  // namespace settle::test
