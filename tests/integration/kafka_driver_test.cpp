// What is Kafka's own, beside the conformance suite.
#include <algorithm>
#include <chrono>

#include "conformance/broker_suite.hpp"
#include "settle/driver/broker_inspection.hpp"
#include "settle/error.hpp"
#include "settle/kafka.hpp"
#include "support/expect_error.hpp"
#include "support/kafka_fixture.hpp"
#include "support/kafka_storage.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;
using enum publish_status;

struct kafka_broker : ::testing::Test {
  void SetUp() override {
    if (const auto missing = kafka_missing(); !missing.empty()) GTEST_SKIP() << missing;
    storage = std::make_unique<kafka_storage>();
    quiet_time = storage->quiet_time();
  }
  void TearDown() override { quiet_time = duration::zero(); }

  std::unique_ptr<broker> open(const std::function<void(kafka::options&)>& change = {}) {
    auto with = storage->options();
    with.partitions = 1;
    if (change) change(with);
    return kafka::open(kafka_url(), with);
  }

  // Reads and acknowledges so many, and leaves. Gives the names of what was assigned.
  static names read(broker& from, std::size_t count) {
    auto member = from.subscribe({"group", {"orders"}});
    names assigned;
    std::vector<delivery_tag> got;
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (got.size() < count && std::chrono::steady_clock::now() < until) {
      const auto some = member->fetch(count - got.size());
      for (const auto& one : some.assigned) assigned.push_back(one.name);
      for (const auto& one : some.deliveries) got.push_back(one.tag);
      if (some.deliveries.empty()) member->arrivals().wait(100ms, {});
    }
    EXPECT_EQ(got.size(), count);
    member->acknowledge(got);
    member->leave();
    return assigned;
  }

  std::unique_ptr<kafka_storage> storage;
};

std::vector<publish_status> statuses(broker& to, const std::vector<message>& batch) {
  std::vector<publish_status> all;
  for (const auto& one : to.publishing().publish(batch)) all.push_back(one.status);
  return all;
}

message of_size(int number, const std::string& key, std::size_t bytes) {
  auto made = make_message(number, key);
  made.payload = std::string(bytes, 'x');
  return made;
}

// Proves O7
TEST_F(kafka_broker, holds_messages_of_a_topic_that_has_to_exist_and_does_not_and_those_of_others_not) {
  auto broker = open([](auto& with) { with.missing_topics = kafka::missing_topic::hold; });
  storage->corner().create_topic("orders", 1);
  EXPECT_EQ(statuses(*broker,
                     {make_message(1, "a", "lonely"), make_message(2, "a"), make_message(3, "b", "lonely")}),
            (std::vector{topic_unavailable, confirmed, topic_unavailable}));
  EXPECT_EQ(code_of([&] { broker->subscribe({"group", {"lonely"}}); }), errc::destination_unavailable);
  storage->corner().create_topic("lonely", 1);
  EXPECT_EQ(statuses(*broker, {make_message(1, "a", "lonely")}), std::vector{confirmed});
}

// Proves O4: only what fails alone is charged
TEST_F(kafka_broker, rejects_what_the_topic_finds_too_large_alone_and_keeps_its_key_back) {
  storage->corner().create_topic("orders", 1, {{"max.message.bytes", "20000"}});
  auto broker = open();
  std::vector<message> batch;
  for (int i = 0; i < 40; ++i) batch.push_back(of_size(i, "key-" + std::to_string(i % 4), 1000));
  batch[17].payload = std::string(30'000, 'x');  // of key-1, as 21, 25, …
  const auto results = broker->publishing().publish(batch);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto expected = i == 17 ? message_rejected : i > 17 && i % 4 == 1 ? destination_failed : confirmed;
    EXPECT_EQ(results[i].status, expected) << i << " " << results[i].reason;
  }
  auto member = broker->subscribe({"group", {"orders"}});
  std::vector<std::string> of_key_0, expected;
  for (const auto& one : collect(*member, 34))
    if (one.content.key == "key-0") of_key_0.push_back(one.content.id);
  for (int i = 0; i < 40; i += 4) expected.push_back(batch[static_cast<std::size_t>(i)].id);
  of_key_0.erase(std::unique(of_key_0.begin(), of_key_0.end()), of_key_0.end());
  EXPECT_EQ(of_key_0, expected);
}

TEST_F(kafka_broker, rejects_what_is_larger_than_its_own_limit_without_asking) {
  auto broker = open([](auto& with) { with.message_bytes_max = 5000; });
  EXPECT_EQ(statuses(*broker, {of_size(1, "a", 100), of_size(2, "b", 6000), of_size(3, "b", 100),
                               of_size(4, "c", 100)}),
            (std::vector{confirmed, message_rejected, destination_failed, confirmed}));
}

TEST_F(kafka_broker, rejects_topics_that_kafka_has_no_names_for) {
  auto broker = open();
  EXPECT_EQ(statuses(*broker, {make_message(1, "a", "orders/eu"), make_message(2, "a", "Bestellung-ü")}),
            (std::vector{message_rejected, message_rejected}));
  EXPECT_EQ(code_of([&] { broker->subscribe({"group", {"orders/eu"}}); }), errc::invalid_name);
}

// Proves C2: no silent reset
TEST_F(kafka_broker, holds_a_partition_in_which_messages_are_missing_or_goes_on_behind_them_if_told_so) {
  auto broker = open();
  publish_all(*broker, numbered(10));
  read(*broker, 2);
  storage->corner().delete_records("orders", 0, 6);
  {
    auto member = broker->subscribe({"group", {"orders"}});
    const auto all = fetch_all(*member);
    EXPECT_TRUE(all.deliveries.empty());
    EXPECT_TRUE(all.assigned.empty());
    EXPECT_GE(storage->log().count("messages_missing group=group"), 1u);
    member->leave();
  }
  auto forward = open([](auto& with) { with.on_gap = kafka::gap::continue_after; });
  auto member = forward->subscribe({"group", {"orders"}});
  EXPECT_EQ(payloads_by_key(collect(*member, 4)).at("key-0"), (names{"6", "7", "8", "9"}));
}

// Proves C2, C10
TEST_F(kafka_broker, takes_a_topic_that_was_made_anew_for_another_log) {
  auto broker = open();
  publish_all(*broker, numbered(5));
  const auto before = read(*broker, 5);
  storage->corner().delete_topic("orders");
  std::this_thread::sleep_for(2s);  // the server goes on deleting behind its answer
  storage->corner().create_topic("orders", 1);
  auto again = open();
  publish_all(*again, {make_message(100, "key-0"), make_message(101, "key-0")});
  const auto after = read(*again, 2);
  ASSERT_EQ(before.size(), 1u);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_NE(before, after);
}

// Proves C4: an outage of a consumer's own database does not cost it its partitions
TEST_F(kafka_broker, keeps_its_partitions_while_it_fetches_nothing) {
  auto broker = open([](auto& with) { with.read_ahead_bytes = 2000; });
  publish_all(*broker, numbered(300));
  auto member = broker->subscribe({"group", {"orders"}});
  auto got = collect(*member, 10);
  ASSERT_EQ(got.size(), 10u);
  const auto until = std::chrono::steady_clock::now() + 6s;
  while (std::chrono::steady_clock::now() < until) {
    const auto some = member->fetch(0);
    EXPECT_TRUE(some.revoked.empty() && some.assigned.empty());
    std::this_thread::sleep_for(200ms);
  }
  std::ranges::move(collect(*member, 290), std::back_inserter(got));
  names expected;
  for (const auto& one : numbered(300)) expected.push_back(one.id);
  EXPECT_EQ(ids_of(got), expected);
}

TEST_F(kafka_broker, lets_members_come_and_go_at_any_moment) {
  auto broker = open([](auto& with) { with.partitions = 4; });
  for (int i = 0; i < 10; ++i) {
    auto member = broker->subscribe({"group", {"orders"}});
    for (int n = 0; n < i; ++n) {
      member->fetch(10);
      member->arrivals().wait(20ms, {});
    }
    if (i % 2 == 0) member->leave();
  }
  publish_all(*broker, numbered(20, 10));
  auto last = broker->subscribe({"group", {"orders"}});
  EXPECT_EQ(id_set(collect(*last, 20)).size(), 20u);
}

TEST_F(kafka_broker, that_is_not_there_is_a_failure_of_the_destination) {
  auto broker = open([](auto& with) {
    with.through = "127.0.0.1:1";
    with.connect_timeout = 500ms;
  });
  EXPECT_EQ(statuses(*broker, {make_message(1, "a")}), std::vector{destination_failed});
  EXPECT_EQ(code_of([&] { broker->subscribe({"group", {"orders"}}); }), errc::destination_unavailable);
}

struct kafka_secure : kafka_broker {
  std::unique_ptr<settle::broker> open_secure(const std::string& url, const std::string& ca) const {
    return kafka::open(url, {.connect_timeout = 2s,
                             .prefix = storage->corner().prefix(),
                             .sasl_mechanism = "PLAIN",
                             .ca_file = ca});
  }
  static std::string with_password(const std::string& password) {
    auto url = kafka_secure_url();
    const auto from = url.find(':', url.find("://") + 3) + 1;
    return url.replace(from, url.find('@') - from, password);
  }
  static publish_result publish_one(broker& to, duration within = 10s) {
    return to.publishing().publish(std::vector{make_message(1, "a")}, {.within = within})[0];
  }
};

// Proves O7
TEST_F(kafka_secure, cluster_is_used_over_tls_by_a_user) {
  auto broker = open_secure(kafka_secure_url(), kafka_ca_file());
  EXPECT_EQ(publish_one(*broker).status, confirmed);
  auto member = broker->subscribe({"group", {"orders"}});
  EXPECT_EQ(collect(*member, 1).size(), 1u);
  EXPECT_EQ(broker->inspection()->name().find('@'), std::string::npos);
}

// Proves O7
TEST_F(kafka_secure, cluster_that_does_not_let_us_in_is_away_and_the_password_is_in_no_error) {
  auto broker = open_secure(with_password("wrong-secret"), kafka_ca_file());
  const auto result = publish_one(*broker, 3s);
  EXPECT_EQ(result.status, destination_failed);
  EXPECT_EQ(result.reason.find("wrong-secret"), std::string::npos) << result.reason;
  EXPECT_NE(result.reason.find("uthentication failed"), std::string::npos) << result.reason;
}

// Proves O7
TEST_F(kafka_secure, cluster_that_forbids_a_topic_holds_its_messages_and_those_of_others_not) {
  for (const auto* topic : {"orders", "secrets"}) storage->corner().create_topic(topic, 1);
  auto broker = open_secure(kafka_secure_url(), kafka_ca_file());
  storage->corner().forbid_writing("secrets");
  const std::vector both{make_message(1, "a", "secrets"), make_message(2, "a")};
  std::vector<publish_status> got;
  for (int i = 0; i < 100 && got != std::vector{topic_unavailable, confirmed}; ++i) {
    got = statuses(*broker, both);
    std::this_thread::sleep_for(20ms);  // rules reach the server behind its answer
  }
  EXPECT_EQ(got, (std::vector{topic_unavailable, confirmed}));
  storage->corner().allow_writing("secrets");
  for (int i = 0; i < 100 && got != std::vector{confirmed, confirmed}; ++i) got = statuses(*broker, both);
  EXPECT_EQ(got, (std::vector{confirmed, confirmed}));
}

// Proves O7
TEST_F(kafka_secure, cluster_with_a_certificate_of_a_stranger_is_not_trusted) {
  auto broker = open_secure(kafka_secure_url(), {});
  const auto result = publish_one(*broker, 3s);
  EXPECT_EQ(result.status, destination_failed);
  EXPECT_NE(result.reason.find("certificate"), std::string::npos) << result.reason;
}

TEST_F(kafka_broker, refuses_options_that_are_out_of_bounds) {
  const auto code = [&](const std::function<void(kafka::options&)>& change) {
    return code_of([&] { open(change); });
  };
  EXPECT_EQ(code([](auto& o) { o.partitions = 0; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.replication = -1; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.session_timeout = 1ms; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.message_bytes_max = 1; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.sasl_mechanism = "MAGIC"; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.certificate_file = "x"; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.security = {{"acks", "0"}}; }), errc::invalid_argument);
  EXPECT_EQ(code([](auto& o) { o.prefix = "a/b"; }), errc::invalid_argument);
  EXPECT_EQ(code({}), std::nullopt);
}

}  // namespace
}  // namespace settle::test
