#include "broker/routing.hpp"

#include <gtest/gtest.h>

namespace settle {
namespace {

// Keeps what it gets; can be told to fail.
class keeping_publisher final : public publisher {
 public:
  std::vector<publish_result> publish(std::span<const message> batch, const call_limits&) override {
    std::vector<publish_result> results;
    for (const auto& one : batch) {
      if (!is_away) topics.push_back(one.topic + "/" + one.id);
      results.push_back(is_away ? publish_result{publish_status::destination_failed, "away"}
                                : publish_result{});
    }
    ++calls;
    return results;
  }

  std::vector<std::string> topics;
  int calls = 0;
  bool is_away = false;
};

message event(std::string topic, std::string id) {
  message made;
  made.topic = std::move(topic);
  made.id = std::move(id);
  return made;
}

using names = std::vector<std::string>;

TEST(topic_routes, fit_a_name_or_a_pattern_and_may_give_another_name) {
  EXPECT_EQ(renamed_by({"orders", "", ""}, "orders"), "orders");
  EXPECT_EQ(renamed_by({"orders", "", ""}, "orders.eu"), std::nullopt);
  EXPECT_EQ(renamed_by({"orders", "", "shop.orders"}, "orders"), "shop.orders");
  EXPECT_EQ(renamed_by({"orders.*", "", ""}, "orders.eu"), "orders.eu");
  EXPECT_EQ(renamed_by({"orders.*", "", "shop.*.orders"}, "orders.eu"), "shop.eu.orders");
  EXPECT_EQ(renamed_by({"*", "", "old.*"}, "orders"), "old.orders");
  EXPECT_EQ(renamed_by({"a*a", "", ""}, "a"), std::nullopt) << "the two ends must not be one letter";
  EXPECT_EQ(renamed_by({"a*a", "", "*"}, "aa"), "") << "a star may stand for nothing";
}

TEST(topic_routes, that_make_no_sense_are_refused_with_a_reason) {
  EXPECT_EQ(problem_of({"orders.*", "", "shop.*"}), std::nullopt);
  EXPECT_EQ(problem_of({"orders", "other", ""}), std::nullopt);
  for (const auto& wrong : {topic_route{"", "", "x"}, topic_route{"a*b*", "", ""}, topic_route{"a", "", "b*"},
                            topic_route{"a*", "", "b"}, topic_route{"a*", "", "*b*"}})
    EXPECT_NE(problem_of(wrong), std::nullopt) << wrong.topic << " as " << wrong.as;
}

// Proves O7
TEST(routed_publishers, send_each_topic_where_its_first_route_says) {
  keeping_publisher usual;
  keeping_publisher other;
  routed_publisher routed(usual,
                          {{{"payments.*", "other", "pay.*"}, &other}, {{"*.eu", "", "europe.*"}, &usual}});
  const std::vector<message> batch{event("orders", "1"), event("payments.eu", "2"), event("orders.eu", "3"),
                                   event("orders", "4"), event("payments.us", "5")};
  const auto results = routed.publish(batch, {});
  EXPECT_EQ(results.size(), 5U);
  EXPECT_EQ(usual.topics, (names{"orders/1", "europe.orders/3", "orders/4"}));
  EXPECT_EQ(other.topics, (names{"pay.eu/2", "pay.us/5"}));
  EXPECT_EQ(usual.calls + other.calls, 2) << "one call per broker";
}

TEST(routed_publishers, give_each_message_the_result_of_its_own_broker) {
  keeping_publisher usual;
  keeping_publisher away;
  away.is_away = true;
  routed_publisher routed(usual, {{{"payments", "away", ""}, &away}});
  const std::vector<message> batch{event("payments", "1"), event("orders", "2"), event("payments", "3")};
  const auto results = routed.publish(batch, {});
  EXPECT_EQ(results[0].status, publish_status::destination_failed);
  EXPECT_EQ(results[1].status, publish_status::confirmed);
  EXPECT_EQ(results[2].status, publish_status::destination_failed);
  EXPECT_EQ(usual.topics, names{"orders/2"});
}

// Proves D3
TEST(routed_publishers, leave_dead_letters_and_replays_the_names_that_their_consumer_knows) {
  keeping_publisher usual;
  keeping_publisher other;
  routed_publisher routed(usual, {{{"orders*", "other", "shop.orders*"}, &other}});
  auto replay = event("orders", "1");
  replay.extensions["settlereplayfor"] = "warehouse";
  auto letter = event("orders.dlq", "2");
  letter.extensions["settledlqconsumer"] = "warehouse";
  routed.publish(std::vector{replay, letter, event("orders", "3")}, {});
  EXPECT_EQ(other.topics, (names{"orders/1", "orders.dlq/2", "shop.orders/3"}));
}

TEST(routed_publishers, pass_a_batch_on_as_it_is_where_nothing_changes) {
  keeping_publisher usual;
  routed_publisher routed(usual, {{{"x", "", "y"}, &usual}});
  EXPECT_TRUE(routed.publish({}, {}).empty());
  EXPECT_EQ(routed.publish(std::vector{event("orders", "1"), event("orders", "2")}, {}).size(), 2U);
  EXPECT_EQ(usual.calls, 1);
}

}  // namespace
}  // namespace settle
