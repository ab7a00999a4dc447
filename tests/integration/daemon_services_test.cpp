// One daemon for many services: the real program, files for databases and brokers.
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "settle/driver/broker.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"
#include "support/daemon_process.hpp"
#include "support/temp_dir.hpp"

namespace settle::daemon {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using test::content_of;
using test::eventually;
using test::get;
using test::post;
using test::program;
using test::write_file;

class daemon_services : public ::testing::Test {
 protected:
  std::unique_ptr<program> start(const std::string& toml, std::vector<std::string> variables = {}) {
    configure(toml);
    return std::make_unique<program>(SETTLED,
                                     std::vector<std::string>{"--config", dir.file("settled.toml"), "--data",
                                                              dir.file("data"), "--listen", "127.0.0.1:0"},
                                     dir.file("settled" + std::to_string(++started_)),
                                     test::surroundings{std::move(variables)});
  }

  void configure(const std::string& toml) { write_file(dir.file("settled.toml"), toml); }

  // A broker `main`, and services of these names with databases of their own.
  std::string tables(const std::vector<std::string>& services, const std::string& more = "") const {
    auto toml = "[broker.main]\nurl = \"" + dir.file("main.db") + "\"\n";
    for (const auto& name : services)
      toml += "[service." + name + "]\nbroker = \"main\"\ndatabase = \"" + dir.file(name + ".db") + "\"\n";
    return toml + more;
  }

  void reload(const program& running, const std::string& toml, const std::string& logs = " info reloaded ") {
    const auto before = count_of(running.log(), logs);
    configure(toml);
    ::kill(running.pid(), SIGHUP);
    EXPECT_TRUE(eventually([&] { return count_of(running.log(), logs) > before; })) << running.log();
  }

  static std::size_t count_of(const std::string& text, const std::string& what) {
    std::size_t found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  }

  static bool is_ready(const program& running, const std::string& service = "") {
    const auto path = service.empty() ? "/readyz" : "/readyz?service=" + service;
    return eventually([&] { return get(running.port(), path).status == 200; });
  }

  void publish(const std::string& service, const std::string& topic, const std::string& id) const {
    const auto db = sqlite::open(dir.file(service + ".db"));
    auto tx = db->begin();
    settle::publish(tx, {.topic = topic, .type = "happened", .key = "k", .payload = id});
    tx.commit();
  }

  // A group that is there before the first message.
  std::unique_ptr<subscription> listen(const std::string& topic, const std::string& broker_file = "main.db") {
    brokers_.push_back(sqlite::open_broker(dir.file(broker_file)));
    return brokers_.back()->subscribe({.group = "test", .topics = {topic}});
  }

  static std::vector<std::string> arrived(subscription& at, std::size_t count) {
    std::vector<std::string> payloads;
    EXPECT_TRUE(eventually([&] {
      for (auto& one : at.fetch(100).deliveries) payloads.push_back(one.content.payload);
      return payloads.size() >= count;
    })) << payloads.size()
        << " of " << count;
    return payloads;
  }

  test::answer claim(const program& running, const std::string& service, const std::string& key) const {
    return post(running.port(), "/services/" + service + "/v1/keys/claim",
                "Content-Type: application/json\r\n",
                R"({"service":"s","caller":"c","key":")" + key + R"("})");
  }

  test::temp_dir dir;

 private:
  std::vector<std::unique_ptr<broker>> brokers_;
  int started_ = 0;
};

using texts = std::vector<std::string>;

// Proves O10, D7
TEST_F(daemon_services, each_have_their_own_database_and_relay_and_say_who_they_are) {
  const auto running = start(tables({"orders", "payments"}));
  ASSERT_TRUE(is_ready(*running)) << running->log();
  const auto at = listen("events");
  publish("orders", "events", "from orders");
  publish("payments", "events", "from payments");
  auto got = arrived(*at, 2);
  std::ranges::sort(got);
  EXPECT_EQ(got, (texts{"from orders", "from payments"}));

  EXPECT_TRUE(running->logs(" info ready service=orders ")) << running->log();
  EXPECT_TRUE(running->logs(" info ready service=payments ")) << running->log();
  for (const std::string line : {"settle_relay_published_total{service=\"orders\"} 1",
                                 "settle_outbox_pending_events{service=\"payments\"} 0",
                                 "settle_store_up{service=\"orders\",store=\"service\"} 1",
                                 "settle_store_up{broker=\"main\",store=\"broker\"} 1",
                                 "settle_broker_messages{broker=\"main\",topic=\"events\"} 2"})
    EXPECT_TRUE(eventually([&] {
      return get(running->port(), "/metrics").body.find("\n" + line + "\n") != std::string::npos;
    })) << line;
  EXPECT_EQ(running->end(SIGTERM).code, 0);
}

// Proves O10, I3
TEST_F(daemon_services, keep_their_keys_and_webhooks_apart) {
  const auto running = start(tables({"orders", "payments"}, R"(
[service.orders.webhook.stripe]
scheme = "stripe"
keys_env = "KEYS"
)"),
                             {"KEYS=whsec"});
  ASSERT_TRUE(is_ready(*running)) << running->log();
  EXPECT_EQ(claim(*running, "orders", "k").status, 200);
  EXPECT_EQ(claim(*running, "orders", "k").status, 409) << "claimed before";
  EXPECT_EQ(claim(*running, "payments", "k").status, 200) << "another service, another key";
  EXPECT_EQ(claim(*running, "nobody", "k").status, 404);
  const auto port = running->port();
  EXPECT_EQ(post(port, "/services/orders/webhooks/stripe", "", "{}").status, 401)
      << "it is there, and not signed";
  EXPECT_EQ(post(port, "/services/payments/webhooks/stripe", "", "{}").status, 404);
  EXPECT_EQ(post(port, "/v1/keys/claim", "", "{}").status, 404)
      << "the paths of the short form name no service";
}

// Proves O10
TEST_F(daemon_services, that_cannot_be_opened_delay_nobody_and_are_opened_once_they_can_be) {
  write_file(dir.file("broken.db"), std::string(8192, 'x'));
  const auto toml = tables({"orders", "broken"}) + "[service.nowhere]\ndatabase = \"" +
                    dir.file("later/nowhere.db") + "\"\n";
  const auto running = start(toml);
  ASSERT_TRUE(is_ready(*running, "orders")) << running->log();
  const auto at = listen("events");
  publish("orders", "events", "one");
  EXPECT_EQ(arrived(*at, 1), texts{"one"});
  EXPECT_EQ(claim(*running, "orders", "k").status, 200);

  const auto all = get(running->port(), "/readyz");
  EXPECT_EQ(all.status, 503);
  const auto services = json::parse(all.body).at("services");
  EXPECT_TRUE(services.at("orders").at("ready").as_bool()) << all.body;
  EXPECT_FALSE(services.at("broken").at("ready").as_bool()) << all.body;
  EXPECT_NE(json::serialize(services.at("nowhere")).find("cannot be opened"), std::string::npos) << all.body;
  EXPECT_EQ(get(running->port(), "/readyz?service=broken").status, 503);
  EXPECT_EQ(get(running->port(), "/readyz?service=typo").status, 404);
  EXPECT_EQ(claim(*running, "broken", "k").status, 503);
  EXPECT_NE(running->log().find(" error service_not_opened service=broken "), std::string::npos);

  fs::create_directory(dir.file("later"));
  EXPECT_TRUE(is_ready(*running, "nowhere")) << running->log();
}

// Proves O7
TEST_F(daemon_services, send_topics_where_their_routes_say) {
  const auto running = start(tables({"orders"}, "[broker.other]\nurl = \"" + dir.file("other.db") + R"("
[[service.orders.route]]
topic = "audit"
broker = "other"
[[service.orders.route]]
topic = "orders.*"
as = "shop.orders.*"
)"));
  ASSERT_TRUE(is_ready(*running)) << running->log();
  const auto audit = listen("audit", "other.db");
  const auto renamed = listen("shop.orders.eu");
  const auto plain = listen("plain");
  publish("orders", "audit", "a");
  publish("orders", "orders.eu", "b");
  publish("orders", "plain", "c");
  EXPECT_EQ(arrived(*audit, 1), texts{"a"});
  EXPECT_EQ(arrived(*renamed, 1), texts{"b"});
  EXPECT_EQ(arrived(*plain, 1), texts{"c"});
}

// Proves O10
TEST_F(daemon_services, come_go_and_change_with_the_file_and_the_others_notice_nothing) {
  const auto running = start(tables({"orders", "payments"}));
  ASSERT_TRUE(is_ready(*running)) << running->log();
  const auto at = listen("events");
  reload(*running,
         tables({"orders", "stock"},
                "[service.orders.webhook.x]\nscheme = \"hmac\"\nevent_id = "
                "\"json:id\"\nkeys_file = \"" +
                    dir.file("keys") + "\"\n"),
         " error reload_refused ");
  EXPECT_EQ(claim(*running, "payments", "a").status, 200) << "a bad file changes nothing";
  EXPECT_NE(running->log().find("names a file that cannot be read"), std::string::npos) << running->log();

  reload(*running, tables({"orders", "stock"}));
  EXPECT_NE(running->log().find(" info reloaded services=2 kept=1 started=1 ended=1 "), std::string::npos)
      << running->log();
  ASSERT_TRUE(is_ready(*running));
  EXPECT_TRUE(running->logs(" info service_ended service=payments")) << running->log();
  EXPECT_EQ(claim(*running, "payments", "b").status, 404);
  EXPECT_EQ(claim(*running, "stock", "b").status, 200);
  EXPECT_EQ(count_of(running->log(), " ready service=orders "), 1U) << "it was left alone";
  publish("stock", "events", "new");
  publish("orders", "events", "old");
  EXPECT_EQ(arrived(*at, 2).size(), 2U);

  reload(*running, tables({"orders", "stock"}, "[service.stock.relay]\nbatch_max = 7\n"));
  EXPECT_TRUE(eventually([&] { return count_of(running->log(), " ready service=stock ") == 2; }));
  publish("stock", "events", "after the change");
  EXPECT_EQ(arrived(*at, 1), texts{"after the change"});
  const auto page = get(running->port(), "/metrics").body;
  EXPECT_NE(page.find("\nsettle_relay_published_total{service=\"stock\"} 2\n"), std::string::npos)
      << "counters go on over a change";
  EXPECT_EQ(running->end(SIGTERM).code, 0);
}

TEST_F(daemon_services, leave_what_cannot_change_while_it_runs_to_the_next_start) {
  const auto running = start(tables({"orders"}));
  ASSERT_TRUE(is_ready(*running));
  reload(*running, tables({"orders"}, "[http]\nworkers = 3\n"));
  EXPECT_NE(running->log().find(" warning reload_needs_restart setting=http.workers "), std::string::npos)
      << running->log();
  reload(*running, "log_level = \"debug\"\n" + tables({"orders"}, "[http]\nworkers = 3\n"));
  get(running->port(), "/healthz");
  EXPECT_TRUE(running->logs(" debug http_request ")) << "the level of the log can";
}

TEST_F(daemon_services, may_be_reloaded_while_they_stop_and_stop_all_the_same) {
  const auto running = start("drain_timeout = \"500ms\"\nbusy_timeout = \"1s\"\n" + tables({"orders"}));
  ASSERT_TRUE(is_ready(*running));
  const auto db = sqlite::open(dir.file("orders.db"));
  const auto blocking = db->begin();  // so that the stop takes a while
  ::kill(running->pid(), SIGTERM);
  ASSERT_TRUE(running->logs(" info stopping ")) << running->log();
  EXPECT_EQ(running->end(SIGHUP).code, 0);
}

// Proves O10, C1
TEST_F(daemon_services, lose_and_double_nothing_while_the_file_is_read_again_ten_times) {
  const auto few = tables({"orders", "payments"});
  const auto more = tables({"orders", "payments", "stock"}, "[service.payments.relay]\nbatch_max = 3\n");
  const auto running = start(few);
  ASSERT_TRUE(is_ready(*running));
  const auto at = listen("events");
  constexpr int each = 300;
  std::map<std::string, int> seen;
  {
    const auto produce = [&](const std::string& service) {
      return std::jthread([this, service] {
        for (int n = 0; n < each; ++n) publish(service, "events", service + std::to_string(n));
      });
    };
    const auto orders = produce("orders");
    const auto payments = produce("payments");
    for (int n = 0; n < 10; ++n) reload(*running, n % 2 == 0 ? more : few);
  }
  std::map<std::string, int> last{{"orders", -1}, {"payments", -1}};
  EXPECT_TRUE(eventually([&] {
    for (const auto& one : at->fetch(1000).deliveries) {
      const auto& payload = one.content.payload;
      if (++seen[payload] > 1) continue;  // a relay that was replaced may send twice, with the same id
      auto& before = last[payload.starts_with("orders") ? "orders" : "payments"];
      const auto number = std::stoi(payload.substr(payload.find_first_of("0123456789")));
      EXPECT_EQ(number, before + 1) << "first deliveries of a key are in order";
      before = number;
    }
    return seen.size() >= 2 * each;
  })) << seen.size();
  EXPECT_EQ(seen.size(), 2U * each);
}

// Proves O10
TEST_F(daemon_services, show_no_secret_in_the_process_list_the_log_or_any_answer) {
  const auto toml = tables({"orders"}, R"(
[service.far]
database_env = "FAR_DATABASE"
broker = "main"
[service.far.keys]
redis_file = ")" + dir.file("redis") + "\"\n");
  write_file(dir.file("redis"), "redis://u:hunter2@127.0.0.1:1/0\n");
  const auto running = start(toml, {"FAR_DATABASE=host=127.0.0.1 port=1 dbname=x user=u password=hunter2"});
  ASSERT_TRUE(is_ready(*running, "orders")) << running->log();
  EXPECT_TRUE(eventually([&] { return running->log().find("service=far") != std::string::npos; }));
  const auto line = content_of("/proc/" + std::to_string(running->pid()) + "/cmdline");
  for (const auto& text : {line, running->log(), get(running->port(), "/readyz").body,
                           get(running->port(), "/metrics").body, claim(*running, "far", "k").body})
    EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
}

// Proves O10
TEST_F(daemon_services, are_shared_by_two_daemons_with_different_files) {
  const auto first = start(tables({"orders", "payments"}));
  ASSERT_TRUE(is_ready(*first));
  configure(tables({"orders", "stock"}));
  program second(
      SETTLED, {"--config", dir.file("settled.toml"), "--data", dir.file("data2"), "--listen", "127.0.0.1:0"},
      dir.file("second"), {});
  ASSERT_TRUE(is_ready(second)) << second.log();
  const auto at = listen("events");
  for (int n = 0; n < 50; ++n) publish("orders", "events", std::to_string(n));
  const auto before = arrived(*at, 50);
  first->end(SIGKILL);
  for (int n = 50; n < 100; ++n) publish("orders", "events", std::to_string(n));
  publish("stock", "events", "stock");
  std::map<std::string, int> seen;
  for (const auto& one : before) ++seen[one];
  EXPECT_TRUE(eventually([&] {
    for (const auto& one : at->fetch(1000).deliveries) ++seen[one.content.payload];
    return seen.size() == 101;
  })) << seen.size();
}

}  // namespace
}  // namespace settle::daemon
