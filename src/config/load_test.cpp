#include "config/load.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "config/compare.hpp"
#include "support/temp_dir.hpp"

namespace settle::config {
namespace {

class configurations : public ::testing::Test {
 protected:
  loaded load(const std::string& toml, std::vector<std::string> environment = {},
              std::map<std::string, std::string> flags = {}) {
    std::ofstream(file()) << toml;
    return load_configuration({file(), std::move(flags), std::move(environment)});
  }

  // Every problem, without the path of the file.
  std::string problems(const std::string& toml, const std::vector<std::string>& environment = {}) {
    try {
      load(toml, environment);
      return {};
    } catch (const configuration_error& e) {
      std::string all = e.what();
      for (auto at = all.find(file()); at != std::string::npos; at = all.find(file()))
        all.replace(at, file().size(), "FILE");
      return all;
    }
  }

  std::string file() const { return dir.file("settled.toml"); }

  test::temp_dir dir;
};

TEST_F(configurations, without_tables_are_one_service_without_a_name) {
  const auto made = load("data = \"d\"\n[relay]\nbatch_max = 7\n").values;
  ASSERT_TRUE(made.is_short());
  EXPECT_EQ(made.services.front().database, "d/settle.db");
  EXPECT_EQ(made.services.front().relay.batch_max, 7);
  ASSERT_EQ(made.brokers.size(), 1U);
  EXPECT_EQ(made.brokers.front().url, "d/broker.db");
}

// Proves O10
TEST_F(configurations, have_a_service_for_each_table_with_the_settings_of_the_top_where_it_says_nothing) {
  const auto made = load(R"(
busy_timeout = "3s"
[relay]
batch_max = 7
lease_ttl = "2s"
[broker]
partitions = 3
[broker.main]
url = "main.db"
keep = "1h"
[service.payments]
database = "payments.db"
[service.orders]
database = "host=db dbname=orders"
[service.orders.relay]
batch_max = 9
[service.orders.webhook.stripe]
scheme = "stripe"
keys_env = "KEYS"
[[service.orders.route]]
topic = "orders.*"
as = "shop.*"
)",
                         {"KEYS=secret"})
                        .values;
  ASSERT_EQ(made.services.size(), 2U);
  const auto& orders = *made.find_service("orders");
  EXPECT_EQ(orders.database, "host=db dbname=orders");
  EXPECT_EQ(orders.broker, "main") << "there is only one";
  EXPECT_EQ(orders.relay.batch_max, 9);
  EXPECT_EQ(orders.relay.lease_ttl, std::chrono::seconds(2));
  EXPECT_EQ(orders.busy_timeout, std::chrono::seconds(3));
  ASSERT_EQ(orders.webhooks.size(), 1U);
  ASSERT_EQ(orders.routes.size(), 1U);
  EXPECT_EQ(orders.routes.front().as, "shop.*");
  EXPECT_EQ(made.find_service("payments")->relay.batch_max, 7);
  EXPECT_TRUE(made.find_service("payments")->webhooks.empty());
  EXPECT_EQ(made.find_broker("main")->options.partitions, 3);
  EXPECT_EQ(made.find_broker("main")->options.keep, std::chrono::hours(1));
  EXPECT_EQ(made.find_service("nobody"), nullptr);
}

TEST_F(configurations, have_settings_of_a_kafka_and_hide_its_passwords) {
  const auto read = load(R"([broker.main]
url_env = "KAFKA_URL"
partitions = 16
prefix = "live."
replication = 3
missing_topics = "hold"
on_gap = "continue"
instance_id = "host-1"
session_timeout = "45s"
sasl_mechanism = "PLAIN"
key_password_env = "KEY"
[service.orders]
database = "orders.db"
)",
                         {"KAFKA_URL=kafkas://me:hunter2@k1,k2", "KEY=hunter3"});
  const auto& main = read.values.find_broker("main")->options;
  EXPECT_EQ(main.partitions, 16);
  EXPECT_EQ(main.server.prefix, "live.");
  EXPECT_EQ(main.kafka.replication, 3);
  EXPECT_EQ(main.kafka.missing_topics, kafka::missing_topic::hold);
  EXPECT_EQ(main.kafka.on_gap, kafka::gap::continue_after);
  EXPECT_EQ(main.kafka.instance_id, "host-1");
  EXPECT_EQ(main.kafka.session_timeout, std::chrono::seconds(45));
  EXPECT_EQ(main.kafka.sasl_mechanism, "PLAIN");
  EXPECT_EQ(main.kafka.key_password, "hunter3");
  const auto printed = print_configuration(read);
  EXPECT_EQ(printed.find("hunter"), std::string::npos) << printed;
  EXPECT_NE(printed.find("on_gap = \"continue\""), std::string::npos) << printed;
  EXPECT_EQ(problems("[broker.main]\nurl = \"kafka://k1\"\non_gap = \"latest\"\n[service.a]\n"
                     "database = \"a.db\"\n"),
            "FILE:3: broker.main.on_gap must be stop or continue, got 'latest'");
}

TEST_F(configurations, name_exchanges_of_others_that_topics_go_to) {
  const auto made = load(R"([broker.main]
url = "amqp://mq.internal/shop"
[[broker.main.exchange]]
topic = "payments"
exchange = "bank-events"
[[broker.main.exchange]]
topic = "invoices"
exchange = "accounting"
routing_key = "invoice.{type}"
[service.orders]
database = "orders.db"
)")
                        .values;
  const auto& exchanges = made.find_broker("main")->options.rabbitmq.existing_exchanges;
  ASSERT_EQ(exchanges.size(), 2U);
  EXPECT_EQ(exchanges[0].exchange, "bank-events");
  EXPECT_EQ(exchanges[0].routing_key, "{type}");
  EXPECT_EQ(exchanges[1].routing_key, "invoice.{type}");
  EXPECT_EQ(problems(R"([broker.main]
url = "amqp://mq.internal/shop"
[[broker.main.exchange]]
exchange = "bank-events"
[service.orders]
database = "orders.db"
)"),
            "FILE:4: broker.main.exchange.topic is missing: the topic whose events go to this exchange");
  EXPECT_EQ(problems(R"([broker.main]
url = "amqp://mq.internal/shop"
[[broker.main.exchange]]
topic = "payments"
routing_key = "{typ}"
[service.orders]
database = "orders.db"
)"),
            "FILE:4: broker.main.exchange.routing_key {typ} is none of {topic}, {type}, {key}, {subject} and "
            "{lane}");
}

TEST_F(configurations, tell_everything_that_is_wrong_with_their_services_at_once) {
  EXPECT_EQ(problems(R"([broker.main]
url = "main.db"
[broker.other]
[service.orders]
database = "orders.db"
[service.payments]
broker = "mian"
[service.stock]
database = "orders.db"
broker = "main"
relay.batch_mx = 3
[service."a b"]
database = "x.db"
)"),
            "FILE:3: broker.other.url is missing: the file of the broker\n"
            "FILE:13: the name in [service.NAME] is 1 to 63 letters, digits, - and _\n"
            "FILE:5: service.orders.broker is missing: one of main, other\n"
            "FILE:7: service.payments.database is missing: a file, a connection string, or database_env or "
            "database_file that says where it is\n"
            "FILE:7: service.payments.broker is 'mian', and the brokers are main, other\n"
            "FILE:11: unknown key 'service.stock.relay.batch_mx'; did you mean "
            "'service.stock.relay.batch_max'?\n"
            "FILE: service.orders and service.stock have the same database");
}

TEST_F(configurations, refuse_the_short_form_beside_tables) {
  const auto found = problems(R"(database = "x.db"
[service.a]
database = "a.db"
[webhook.stripe]
scheme = "stripe"
)");
  EXPECT_NE(found.find("FILE:1: database is that of the short form"), std::string::npos) << found;
  EXPECT_NE(found.find("FILE:5: webhook.stripe.scheme is of the short form"), std::string::npos) << found;
}

TEST_F(configurations, refuse_a_route_that_makes_no_sense) {
  const auto found = problems(R"([service.a]
database = "a.db"
[[service.a.route]]
topic = "a*"
as = "b"
[[service.a.route]]
topic = "x"
broker = "nowhere"
)");
  EXPECT_NE(found.find("FILE:4: a route's as would give every topic"), std::string::npos) << found;
  EXPECT_NE(found.find("service.a.route.broker is 'nowhere'"), std::string::npos) << found;
}

TEST_F(configurations, take_what_may_hold_a_password_from_the_environment_or_a_file) {
  std::ofstream(dir.file("secret")) << "  host=db dbname=b password=hunter2\n";
  const auto made = load("[service.a]\ndatabase_env = \"A_DATABASE\"\n[service.b]\ndatabase_file = \"" +
                             dir.file("secret") + "\"\n[service.b.keys]\nredis_env = \"B_REDIS\"\n",
                         {"A_DATABASE=host=db dbname=a password=hunter2", "B_REDIS=redis://u:hunter2@h:1"});
  EXPECT_EQ(made.values.find_service("a")->database, "host=db dbname=a password=hunter2");
  EXPECT_EQ(made.values.find_service("b")->database, "host=db dbname=b password=hunter2");
  EXPECT_EQ(made.values.find_service("b")->keys_redis, "redis://u:hunter2@h:1");
  const auto shown = print_configuration(made);
  EXPECT_EQ(shown.find("hunter2"), std::string::npos) << shown;
  EXPECT_NE(shown.find("from the environment"), std::string::npos) << shown;
}

TEST_F(configurations, say_what_is_wrong_with_a_secret_without_quoting_it) {
  const auto found = problems(
      "[service.a]\ndatabase_env = \"hunter2\"\n[service.b]\ndatabase_file = "
      "\"/nowhere/hunter2\"\n[service.c]\ndatabase = \"mysql://u:hunter2@h\"\n");
  EXPECT_EQ(found.find("hunter2"), std::string::npos) << found;
  EXPECT_NE(found.find("FILE:2: service.a.database_env names a variable that is not set"), std::string::npos)
      << found;
  EXPECT_NE(found.find("FILE:4: service.b.database_file names a file that cannot be read"), std::string::npos)
      << found;
  EXPECT_EQ(found.find("is missing"), std::string::npos) << found;
}

TEST_F(configurations, print_a_file_that_means_the_same) {
  const std::string toml = R"([broker.main]
url = "main.db"
[broker.other]
url = "other.db"
[service.a]
database = "a.db"
broker = "main"
[service.a.relay]
batch_max = 9
[[service.a.route]]
topic = "x.*"
broker = "other"
as = "y.*"
[service.b]
database = "b.db"
broker = "other"
)";
  const auto first = load(toml);
  const auto again = load(print_configuration(first));
  ASSERT_EQ(again.values.services.size(), 2U);
  for (std::size_t n = 0; n < 2; ++n) {
    EXPECT_TRUE(same_settings(first.values.services[n], again.values.services[n])) << n;
    EXPECT_TRUE(same_settings(first.values.brokers[n], again.values.brokers[n])) << n;
  }
}

TEST_F(configurations, differ_in_any_setting_of_a_service_also_in_a_key_of_a_webhook) {
  const std::string toml =
      "[service.a]\ndatabase = \"a.db\"\n[service.a.webhook.s]\nscheme = \"stripe\"\nkeys_env = \"K\"\n";
  const auto a = load(toml, {"K=one"}).values.services.front();
  EXPECT_TRUE(same_settings(a, load(toml, {"K=one"}).values.services.front()));
  EXPECT_FALSE(same_settings(a, load(toml, {"K=two"}).values.services.front()));
  EXPECT_FALSE(same_settings(a, load("busy_timeout = \"1s\"\n" + toml, {"K=one"}).values.services.front()));
  EXPECT_FALSE(same_settings(
      a, load(toml + "[[service.a.route]]\ntopic = \"x\"\n", {"K=one"}).values.services.front()));
}

TEST_F(configurations, name_the_settings_that_cannot_change_while_the_daemon_runs) {
  const auto running = load("listen = \"127.0.0.1:1\"\nlog_level = \"info\"\n").values;
  const auto next = load("listen = \"127.0.0.1:2\"\nlog_level = \"error\"\n[http]\nworkers = 3\n").values;
  EXPECT_EQ(fixed_differences(running, next), (std::vector<std::string>{"listen", "http.workers"}));
  const auto both = with_fixed_of(running, next);
  EXPECT_EQ(both.listen, "127.0.0.1:1");
  EXPECT_EQ(both.log, log_level::error);
}

}  // namespace
}  // namespace settle::config
