// One daemon for services on PostgreSQL, one of which has a database that hangs or goes away.
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <thread>

#include "settle/driver/broker.hpp"
#include "settle/sqlite.hpp"
#include "support/daemon_process.hpp"
#include "support/postgres_fixture.hpp"
#include "support/tcp_proxy.hpp"
#include "support/temp_dir.hpp"

namespace settle::daemon {
namespace {

namespace json = boost::json;
using test::eventually;
using test::get;
using test::program;

class postgres_services : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }

  // Connection strings have passwords, so they come through the environment.
  std::unique_ptr<program> start(const std::vector<std::pair<std::string, std::string>>& services) {
    std::string toml = "[broker.main]\nurl = \"" + dir.file("main.db") + "\"\n[http]\nworkers = 2\n";
    std::vector<std::string> variables;
    for (const auto& [name, conninfo] : services) {
      toml += "[service." + name + "]\ndatabase_env = \"" + name + "\"\n";
      variables.push_back(name + "=" + conninfo);
    }
    test::write_file(dir.file("settled.toml"), toml);
    return std::make_unique<program>(SETTLED,
                                     std::vector<std::string>{"--config", dir.file("settled.toml"), "--data",
                                                              dir.file("data"), "--listen", "127.0.0.1:0"},
                                     dir.file("settled"), test::surroundings{variables});
  }

  static bool is_ready(const program& running, const std::string& service) {
    return eventually([&] { return get(running.port(), "/readyz?service=" + service).status == 200; });
  }

  static test::answer claim(int port, const std::string& service, const std::string& key) {
    return test::post(port, "/services/" + service + "/v1/keys/claim", "Content-Type: application/json\r\n",
                      R"({"service":"s","caller":"c","key":")" + key + R"("})");
  }

  static void publish(const test::scratch_database& to, int number) {
    to.run("select settle.publish('events', 'happened', 'k', '" + std::to_string(number) + "'::text)");
  }

  // Their payloads, once so many different ones have come.
  static std::set<std::string> arrived(subscription& at, std::size_t count) {
    std::set<std::string> payloads;
    EXPECT_TRUE(eventually([&] {
      for (auto& one : at.fetch(100).deliveries) payloads.insert(one.content.payload);
      return payloads.size() >= count;
    })) << payloads.size();
    return payloads;
  }

  test::temp_dir dir;
};

// Proves O10
TEST_F(postgres_services, one_whose_database_hangs_delays_nobody_else) {
  const test::scratch_database calm;
  const test::scratch_database hung;
  // The server is reached over TCP here, because the line is what hangs.
  test::tcp_proxy line("127.0.0.1", std::stoi(test::word_of(test::postgres_conninfo(), "port")));
  const auto running =
      start({{"calm", calm.conninfo()},
             {"hung", test::with(hung.conninfo(), "host=127.0.0.1 port=" + std::to_string(line.port()))}});
  ASSERT_TRUE(is_ready(*running, "calm")) << running->log();
  ASSERT_TRUE(is_ready(*running, "hung")) << running->log();
  const auto port = running->port();
  const auto broker = sqlite::open_broker(dir.file("main.db"));
  const auto at = broker->subscribe({.group = "test", .topics = {"events"}});

  line.arm(test::tcp_proxy::to_client, test::tcp_proxy::stall, 0);
  for (int n = 0; n < 5; ++n) publish(hung, n);
  std::atomic<int> answered = 0;
  std::vector<std::jthread> waiting;  // more than there are workers of one service
  for (int n = 0; n < 6; ++n)
    waiting.emplace_back([&, n] {
      const auto status = claim(port, "hung", std::to_string(n)).status;
      EXPECT_TRUE(status == 200 || status == 503) << status;
      ++answered;
    });
  EXPECT_EQ(claim(port, "calm", "k").status, 200);
  for (int n = 10; n < 15; ++n) publish(calm, n);
  EXPECT_EQ(arrived(*at, 5).size(), 5U);
  const auto all = get(port, "/readyz");
  EXPECT_EQ(all.status, 503);
  const auto services = json::parse(all.body).at("services");
  EXPECT_TRUE(services.at("calm").at("ready").as_bool()) << all.body;
  EXPECT_FALSE(services.at("hung").at("ready").as_bool()) << all.body;
  const auto page = get(port, "/metrics").body;
  EXPECT_NE(page.find("\nsettle_store_up{service=\"calm\",store=\"service\"} 1\n"), std::string::npos)
      << page;
  EXPECT_NE(page.find("\nsettle_store_up{service=\"hung\",store=\"service\"} 0\n"), std::string::npos)
      << page;
  EXPECT_EQ(answered, 0) << "all of this happened while the other service had no answer for anybody";

  line.disarm();
  waiting.clear();
  EXPECT_EQ(arrived(*at, 5).size(), 5U) << "what waited is relayed";
  EXPECT_TRUE(is_ready(*running, "hung")) << running->log();
  EXPECT_EQ(running->end(SIGTERM).code, 0);
}

// Proves O10, O12
TEST_F(postgres_services, one_whose_server_restarts_goes_on_by_itself_and_the_others_notice_nothing) {
  const test::scratch_database calm;
  const test::private_server other;
  const auto running = start({{"calm", calm.conninfo()}, {"other", other.conninfo()}});
  ASSERT_TRUE(is_ready(*running, "calm")) << running->log();
  ASSERT_TRUE(is_ready(*running, "other")) << running->log();
  const auto broker = sqlite::open_broker(dir.file("main.db"));
  const auto at = broker->subscribe({.group = "test", .topics = {"events"}});
  test::run_sql(other.conninfo(), "select settle.publish('events', 'happened', 'k', '1'::text)");
  EXPECT_EQ(arrived(*at, 1).size(), 1U);
  other.command("crash postgres");
  EXPECT_TRUE(eventually([&] { return get(running->port(), "/readyz?service=other").status == 503; }));
  EXPECT_EQ(get(running->port(), "/readyz?service=calm").status, 200);
  publish(calm, 2);
  EXPECT_EQ(arrived(*at, 1), std::set<std::string>{"2"});
  EXPECT_EQ(running->log().find("service_failed service=calm"), std::string::npos) << running->log();
  other.command("start postgres");
  EXPECT_TRUE(is_ready(*running, "other")) << running->log();
  test::run_sql(other.conninfo(), "select settle.publish('events', 'happened', 'k', '3'::text)");
  EXPECT_EQ(arrived(*at, 1), std::set<std::string>{"3"});
}

}  // namespace
}  // namespace settle::daemon
