// All services of the daemon's file at a glance, where some are on a PostgreSQL that hangs.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <optional>
#include <regex>

#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "support/daemon_process.hpp"
#include "support/postgres_fixture.hpp"
#include "support/tcp_proxy.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::outcome;

class postgres_cli_services : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
    orders.emplace();
    stock.emplace();
    const auto server = test::postgres_conninfo();
    line.emplace(test::word_of(server, "host"), std::stoi(test::word_of(server, "port")));
    const auto through_line =
        test::with(stock->conninfo(), fmt::format("host=127.0.0.1 port={} sslmode=disable", line->port()));
    test::write_file(dir.file("stock.conninfo"), through_line);
    test::write_file(
        dir.file("settled.toml"),
        fmt::format("[broker.main]\nurl = \"{}\"\n[service.orders]\ndatabase_env = \"ORDERS\"\n"
                    "[service.stock]\ndatabase_file = \"{}\"\n[service.files]\ndatabase = \"{}\"\n",
                    dir.file("main.db"), dir.file("stock.conninfo"), dir.file("files.db")));
    const auto made = call({"migrate"});
    ASSERT_EQ(made.code, 0) << made.err;
  }

  outcome call(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--config", dir.file("settled.toml")});
    auto done = test::program(SETTLE_CLI, std::move(arguments), dir.file("call"),
                              {.variables = {"ORDERS=" + orders->conninfo()}})
                    .end();
    const auto secret = test::word_of(test::postgres_conninfo(), "password");
    EXPECT_EQ((done.out + done.err).find(secret), std::string::npos) << "it shows the password";
    return done;
  }

  test::temp_dir dir;
  std::optional<test::scratch_database> orders, stock;
  std::optional<test::tcp_proxy> line;
};

// Proves D7
TEST_F(postgres_cli_services, status_shows_services_on_servers_and_in_files) {
  ASSERT_EQ(call({"publish", "orders", "order.placed", "--service", "orders"}).code, 0);
  const auto status = call({"status"});
  EXPECT_EQ(status.code, 0) << status.out << status.err;
  EXPECT_TRUE(std::regex_search(status.out, std::regex("orders +database " + orders->name() +
                                                       " at .* 1 +[0-9.]+ s +0 +0 +0 +0 +0 +attention\n")))
      << status.out;
  EXPECT_TRUE(std::regex_search(status.out, std::regex("stock +database .* 0 +0 +0 +0 +0 +0 +ok\n")))
      << status.out;
  EXPECT_TRUE(std::regex_search(status.out, std::regex("files +.*files.db +0 +0 +0 +0 +0 +0 +ok\n")))
      << status.out;
  EXPECT_EQ(call({"relay", "--once", "--service", "orders"}).out, "published 1 event\n");
  EXPECT_EQ(call({"verify"}).code, 0);
  EXPECT_EQ(call({"doctor", "--service", "stock"}).code, call({"doctor", "--service", "orders"}).code);
}

// Wherever the server falls silent: before it is connected, while it greets, in the middle of an answer.
// Proves D7
TEST_F(postgres_cli_services, a_server_that_falls_silent_is_unknown_and_holds_up_nobody) {
  for (const std::size_t after : {0, 100, 600, 1000, 2000}) {
    line->arm(test::tcp_proxy::to_client, test::tcp_proxy::stall, after);
    const auto began = std::chrono::steady_clock::now();
    const auto status = call({"status", "--json"});
    const auto took = std::chrono::steady_clock::now() - began;
    ASSERT_TRUE(line->struck()) << after;
    EXPECT_LT(took, 3s) << "2 s, and room for a machine that is busy; after " << after << " bytes";
    EXPECT_EQ(status.code, 3) << status.err;
    const auto told = boost::json::parse(status.out);
    EXPECT_EQ(told.at_pointer("/services/stock/state").as_string(), "unknown") << status.out;
    EXPECT_EQ(told.at_pointer("/services/stock/error/code").as_string(), "store_unavailable") << status.out;
    EXPECT_EQ(told.at_pointer("/services/orders/state").as_string(), "ok") << status.out;
    EXPECT_EQ(told.at_pointer("/services/files/state").as_string(), "ok") << status.out;
    line->disarm();
  }
  EXPECT_EQ(call({"status"}).code, 0) << "it answers again";
}

}  // namespace
}  // namespace settle
