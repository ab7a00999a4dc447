// RabbitMQ against the broker conformance suite, and what is its own.
#include <optional>
#include <thread>

#include "conformance/broker_suite.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"
#include "settle/rabbitmq.hpp"
#include "settle/testing.hpp"
#include "support/expect_error.hpp"
#include "support/quiet_log.hpp"
#include "support/rabbitmq_fixture.hpp"
#include "support/tcp_proxy.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

// The server behind a proxy. Who is silent for too long is one whose line was cut: the server cannot tell.
class rabbitmq_storage final : public broker_storage {
 public:
  std::unique_ptr<broker> open(int partitions) override {
    auto with = options();
    with.queues = partitions;
    return rabbitmq::open(url(), with);
  }
  rabbitmq::options options() {
    environment env;
    env.time = &time_;
    env.log = &log_;
    env.counters = &counters_;
    return {.env = env,
            .prefetch = 8192,  // the suite takes thousands before it acknowledges any
            .prefix = corner_.prefix(),
            .without_groups = rabbitmq::unrouted::discard,
            .balance_every = balance_every};
  }
  std::string url() const { return with_port(rabbitmq_url(), proxy_.port()); }

  void pass_a_heartbeat() override {
    time_.advance(balance_every);
    std::this_thread::sleep_for(quiet_time());  // what has been asked of the server takes its time
  }
  void outlive_leases() override { proxy_.cut_all(); }
  bool hang(bool hanging) override {
    if (hanging)
      proxy_.arm(tcp_proxy::to_client, tcp_proxy::stall, 0);
    else
      proxy_.disarm();
    return true;
  }
  duration quiet_time() const override { return 300ms; }

  metrics& counters() { return counters_; }
  const scratch_broker& corner() const { return corner_; }

 private:
  static constexpr duration balance_every = 3s;
  scratch_broker corner_;
  tcp_proxy proxy_{"127.0.0.1", port_of(rabbitmq_url())};
  testing::manual_time time_;
  quiet_log log_;
  metrics counters_;
};

broker_driver rabbitmq_driver() {
  return {.name = "rabbitmq",
          .fresh = [] { return std::make_unique<rabbitmq_storage>(); },
          .missing = rabbitmq_missing};
}

INSTANTIATE_TEST_SUITE_P(conformance, broker_conformance, ::testing::Values(rabbitmq_driver()), broker_name);

struct rabbitmq_broker : ::testing::Test {
  void SetUp() override {
    if (const auto missing = rabbitmq_missing(); !missing.empty()) GTEST_SKIP() << missing;
    storage = std::make_unique<rabbitmq_storage>();
  }
  std::unique_ptr<rabbitmq_storage> storage;
};

publish_result publish_one(broker& to, const message& what, const call_limits& limits = {}) {
  return to.publishing().publish(std::vector{what}, limits).at(0);
}

// Proves O7
TEST_F(rabbitmq_broker, messages_of_a_topic_without_groups_are_held_and_those_of_others_are_not) {
  auto with = storage->options();
  with.without_groups = rabbitmq::unrouted::hold;
  with.queues = 2;
  auto broker = rabbitmq::open(storage->url(), with);
  auto member = broker->subscribe({"group", {"orders"}});
  const std::vector<message> batch{make_message(1, "a", "lonely"), make_message(2, "a"),
                                   make_message(3, "a", "lonely")};
  const auto results = broker->publishing().publish(batch);
  EXPECT_EQ(results[0].status, publish_status::topic_unavailable);
  EXPECT_NE(results[0].reason.find("no group listens to topic lonely"), std::string::npos)
      << results[0].reason;
  EXPECT_EQ(results[1].status, publish_status::confirmed) << results[1].reason;
  EXPECT_EQ(results[2].status, publish_status::topic_unavailable);
  auto late = broker->subscribe({"group", {"lonely"}});
  publish_all(*broker, {batch[0], batch[2]});
  EXPECT_EQ(ids_of(collect(*late, 2)), (std::vector{batch[0].id, batch[2].id}));
}

TEST_F(rabbitmq_broker, what_is_discarded_for_want_of_a_group_is_counted) {
  auto broker = storage->open(2);
  publish_all(*broker, {make_message(1, "a", "lonely"), make_message(2, "b", "lonely")});
  EXPECT_EQ(storage->counters().value("settle_rabbitmq_discarded_total", {{"topic", "lonely"}}), 2);
}

// Proves D1
TEST_F(rabbitmq_broker, dead_letters_are_kept_before_anybody_asks_for_them) {
  auto with = storage->options();
  with.without_groups = rabbitmq::unrouted::hold;
  auto broker = rabbitmq::open(storage->url(), with);
  EXPECT_EQ(publish_one(*broker, make_message(1, "a", "orders.dlq")).status, publish_status::confirmed);
}

TEST_F(rabbitmq_broker, a_group_keeps_the_number_of_queues_that_it_was_created_with) {
  storage->open(2)->subscribe({"group", {"orders"}})->leave();
  auto other = storage->open(3);
  EXPECT_EQ(code_of([&] { other->subscribe({"group", {"orders"}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { other->subscribe({"other group", {"orders"}}); }), std::nullopt);
}

TEST_F(rabbitmq_broker, names_with_slashes_mean_different_groups) {
  auto broker = storage->open(1);
  auto one = broker->subscribe({"a/b", {"c"}});
  auto two = broker->subscribe({"a", {"b/c"}});
  publish_all(*broker, {make_message(1, "k", "c")});
  EXPECT_EQ(collect(*one, 1).size(), 1u);
  quiet_time = storage->quiet_time();
  EXPECT_TRUE(drain(*two).empty());
}

TEST_F(rabbitmq_broker, a_topic_that_the_server_keeps_for_itself_is_rejected) {
  auto with = storage->options();
  with.prefix = "";
  auto broker = rabbitmq::open(storage->url(), with);
  EXPECT_EQ(publish_one(*broker, make_message(1, "a", "amq.direct")).status,
            publish_status::message_rejected);
  EXPECT_EQ(code_of([&] { broker->subscribe({"group", {"amq.direct"}}); }), errc::invalid_name);
}

TEST_F(rabbitmq_broker, attributes_that_fit_into_no_frame_are_rejected_alone) {
  auto broker = storage->open(1);
  auto large = make_message(1, "a");
  for (int i = 0; i < 20; ++i) large.extensions["note" + std::to_string(i)] = std::string(8000, 'x');
  const std::vector<message> batch{large, make_message(2, "b")};
  const auto results = broker->publishing().publish(batch);
  EXPECT_EQ(results[0].status, publish_status::message_rejected);
  EXPECT_EQ(results[1].status, publish_status::confirmed) << results[1].reason;
}

TEST_F(rabbitmq_broker, large_messages_come_whole) {
  auto broker = storage->open(1);
  auto member = broker->subscribe({"group", {"orders"}});
  auto large = make_message(1, "a");
  for (int i = 0; i < 3'000'000; ++i) large.payload += static_cast<char>(i % 251);
  publish_all(*broker, {large});
  const auto got = collect(*member, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_TRUE(got[0].content.payload == large.payload);
}

TEST_F(rabbitmq_broker, a_server_that_is_not_there_is_a_failure_of_the_destination) {
  tcp_proxy nobody("127.0.0.1", 1);
  auto broker = rabbitmq::open(with_port(rabbitmq_url(), nobody.port()), storage->options());
  const auto result = publish_one(*broker, make_message(1, "a"));
  EXPECT_EQ(result.status, publish_status::destination_failed);
  EXPECT_EQ(code_of([&] { broker->subscribe({"group", {"orders"}}); }), errc::destination_unavailable);
}

TEST_F(rabbitmq_broker, a_wrong_password_is_told_without_being_quoted) {
  auto url = rabbitmq_url();
  const auto colon = url.find(':', 8);
  url.replace(colon + 1, url.find('@') - colon - 1, "wrong-secret");
  auto broker = rabbitmq::open(url, storage->options());
  const auto result = publish_one(*broker, make_message(1, "a"));
  EXPECT_EQ(result.status, publish_status::destination_failed);
  EXPECT_NE(result.reason.find("ACCESS_REFUSED"), std::string::npos) << result.reason;
  EXPECT_EQ(result.reason.find("wrong-secret"), std::string::npos) << result.reason;
}

TEST_F(rabbitmq_broker, a_line_with_tls_carries_everything_if_the_server_is_who_it_says) {
  auto with = storage->options();
  with.queues = 1;
  with.ca_file = rabbitmq_ca_file();
  auto broker = rabbitmq::open(rabbitmq_tls_url(), with);
  auto member = broker->subscribe({"group", {"orders"}});
  auto large = make_message(1, "a");
  for (int i = 0; i < 1'000'000; ++i) large.payload += static_cast<char>(i % 251);
  publish_all(*broker, {large, make_message(2, "a")});
  const auto got = collect(*member, 2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_TRUE(got[0].content.payload == large.payload);
  member->acknowledge(tags_of(got));
  member->leave();

  with.ca_file = "";  // nobody that the system trusts has signed it
  auto doubtful = rabbitmq::open(rabbitmq_tls_url(), with);
  const auto result = publish_one(*doubtful, make_message(3, "a"));
  EXPECT_EQ(result.status, publish_status::destination_failed);
  EXPECT_NE(result.reason.find("certificate verify failed"), std::string::npos) << result.reason;
}

TEST_F(rabbitmq_broker, options_out_of_bounds_are_refused) {
  const auto code = [&](auto change) {
    auto with = storage->options();
    change(with);
    return code_of([&] { rabbitmq::open(storage->url(), with); });
  };
  EXPECT_EQ(code([](auto& o) { o.queues = 0; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.queues = 257; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.prefetch = 0; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.heartbeat = 500ms; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.certificate_file = "x"; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto&) {}), std::nullopt);
}

}  // namespace
}  // namespace settle::test
