// Looking into a broker. Who cannot be looked into, or not be read from a place, says so with a null pointer.
#include <algorithm>
#include <set>

#include "conformance/broker_suite.hpp"
#include "settle/driver/broker_inspection.hpp"

namespace settle::test {
namespace {

// A broker, and what it lets others see.
struct looked_into {
  std::unique_ptr<broker> at;
  broker_inspection* inside = at->inspection();

  broker_log& log() const { return *inside->log(); }
  bool is_readable() const { return inside != nullptr && inside->log() != nullptr; }

  inspected_group only_group() const {
    const auto groups = inside->groups();
    EXPECT_EQ(groups.size(), 1u);
    return groups.empty() ? inspected_group() : groups[0];
  }

  std::vector<std::string> read_ids(const log_position& after, const read_limits& limits = {}) const {
    std::vector<std::string> ids;
    for (const auto& one : log().read("orders", after, limits)) ids.push_back(one.content.id);
    return ids;
  }
};

std::vector<message> numbered(int first, int last) {
  std::vector<message> all;
  for (int i = first; i <= last; ++i) all.push_back(make_message(i, "key-" + std::to_string(i)));
  return all;
}

std::vector<std::string> ids(int first, int last) {
  std::vector<std::string> all;
  for (const auto& one : numbered(first, last)) all.push_back(one.id);
  return all;
}

int logs_with_an_order(const broker_driver& of) { return of.orders_between_logs ? 4 : 1; }
constexpr auto closed = "this broker cannot be looked into";
constexpr auto unreadable = "this broker cannot be read from a place";

TEST_P(broker_conformance, inspection_tells_the_topics_and_what_each_keeps) {
  const looked_into broker{open()};
  if (broker.inside == nullptr) GTEST_SKIP() << closed;
  EXPECT_TRUE(broker.inside->topics().empty());
  publish_all(*broker.at, numbered(1, 3));
  publish_all(*broker.at, {make_message(4, "a", "invoices")});
  const auto topics = broker.inside->topics();
  ASSERT_EQ(topics.size(), 2u);
  const std::size_t first = GetParam().knows_first_use ? 0 : 1;
  EXPECT_EQ(topics[first].name, "orders") << "the one that was used first, or the last by name";
  EXPECT_EQ(topics[1 - first].name, "invoices");
  if (const auto& kept = topics[first].messages) {
    EXPECT_EQ(kept, 3);
  }
  EXPECT_EQ(broker.inside->topics(1).size(), 1u);
}

TEST_P(broker_conformance, inspection_tells_the_groups_their_members_and_their_lag) {
  const looked_into broker{open()};
  if (broker.inside == nullptr) GTEST_SKIP() << closed;
  auto member = broker.at->subscribe({"warehouse", {"orders"}});
  publish_all(*broker.at, numbered(1, 5));
  const auto got = drain(*member);
  ASSERT_EQ(got.size(), 5u);
  if (const auto before = broker.only_group(); before.lag && before.lag_has_what_members_hold) {
    EXPECT_EQ(*before.lag, 5) << "nothing is acknowledged";
  }
  member->acknowledge(tags_of(got));
  const auto group = broker.only_group();
  EXPECT_EQ(group.group, "warehouse");
  EXPECT_EQ(group.topic, "orders");
  EXPECT_EQ(group.members_alive, 1);
  if (group.lag) {
    EXPECT_EQ(*group.lag, 0);
  }
  member->leave();
  EXPECT_EQ(broker.only_group().members_alive, 0);
}

TEST_P(broker_conformance, inspection_tells_when_the_oldest_waiting_message_came_if_that_is_asked_for) {
  const looked_into broker{open()};
  if (broker.inside == nullptr) GTEST_SKIP() << closed;
  broker.at->subscribe({"warehouse", {"orders"}})->leave();
  EXPECT_EQ(broker.only_group().oldest, std::nullopt);
  publish_all(*broker.at, numbered(1, 2));
  EXPECT_EQ(broker.only_group().oldest, std::nullopt) << "it was not asked for";
  const auto groups = broker.inside->groups({.with_times = true});
  ASSERT_EQ(groups.size(), 1u);
  if (!groups[0].lag || broker.inside->log() == nullptr) return;  // it does not look into messages
  EXPECT_EQ(groups[0].lag, 2);
  ASSERT_TRUE(groups[0].oldest && groups[0].newest);
  EXPECT_LE(*groups[0].oldest, *groups[0].newest);
}

TEST_P(broker_conformance, inspection_reads_messages_from_a_place_on_without_a_group) {
  const looked_into broker{open(logs_with_an_order(GetParam()))};
  if (!broker.is_readable()) GTEST_SKIP() << unreadable;
  publish_all(*broker.at, numbered(1, 10));
  EXPECT_EQ(broker.read_ids({}), ids(1, 10));
  const auto first = broker.log().read("orders", {}, {.messages_max = 4});
  ASSERT_EQ(first.size(), 4u);
  EXPECT_TRUE(std::ranges::is_sorted(first, {}, &placed_message::place));
  EXPECT_EQ(broker.read_ids(first.back().place), ids(5, 10));
  EXPECT_TRUE(broker.log().read("unknown", {}, {}).empty());
  EXPECT_TRUE(broker.inside->groups().empty()) << "nobody has joined";
}

TEST_P(broker_conformance, inspection_pages_through_several_partitions_without_gaps_or_copies) {
  const looked_into broker{open(4)};
  if (!broker.is_readable()) GTEST_SKIP() << unreadable;
  std::map<std::string, std::vector<std::string>> expected, read;
  std::vector<message> all;
  for (int i = 1; i <= 40; ++i) {
    all.push_back(make_message(i, "key-" + std::to_string(i % 8)));
    expected[all.back().key].push_back(all.back().id);
  }
  publish_all(*broker.at, all);
  log_position after;
  for (auto page = broker.log().read("orders", after, {.messages_max = 7}); !page.empty();
       page = broker.log().read("orders", after, {.messages_max = 7})) {
    EXPECT_LE(page.size(), 7u);
    for (const auto& one : page) read[one.content.key].push_back(one.content.id);
    after = page.back().place;
  }
  EXPECT_EQ(read, expected);
}

TEST_P(broker_conformance, inspection_reads_as_many_payloads_as_fit_and_one_at_least) {
  const looked_into broker{open(logs_with_an_order(GetParam()))};
  if (!broker.is_readable()) GTEST_SKIP() << unreadable;
  publish_all(*broker.at, numbered(1, 3));
  EXPECT_EQ(broker.read_ids({}, {.bytes_max = 0}), ids(1, 1));
  EXPECT_EQ(broker.read_ids({}, {.bytes_max = 2}), ids(1, 2)) << "a payload is one digit";
}

TEST_P(broker_conformance, inspection_finds_the_place_before_the_last_messages) {
  const looked_into broker{open(logs_with_an_order(GetParam()))};
  if (!broker.is_readable()) GTEST_SKIP() << unreadable;
  publish_all(*broker.at, numbered(1, 10));
  publish_all(*broker.at, {make_message(99, "a", "invoices")});
  EXPECT_EQ(broker.read_ids(broker.log().before_last("orders", 3)), ids(8, 10));
  EXPECT_EQ(broker.read_ids(broker.log().before_last("orders", 100)), ids(1, 10));
  const auto end = broker.log().before_last("orders", 0);
  EXPECT_TRUE(broker.read_ids(end).empty());
  publish_all(*broker.at, numbered(11, 12));
  EXPECT_EQ(broker.read_ids(end), ids(11, 12));
}

// What the checker goes by. Proves V2
TEST_P(broker_conformance, inspection_scans_every_message_with_the_groups_that_have_not_acknowledged_it) {
  const looked_into broker{open()};
  if (!broker.is_readable()) GTEST_SKIP() << unreadable;
  auto slow = broker.at->subscribe({"mail", {"orders", "invoices"}});
  auto fast = broker.at->subscribe({"warehouse", {"orders"}});
  publish_all(*broker.at, numbered(1, 2));
  fast->acknowledge(tags_of(collect(*fast, 2)));
  publish_all(*broker.at, {make_message(3, "a", "refunds")});
  std::set<std::pair<std::string, std::string>> groups;
  std::map<std::string, std::vector<std::string>> waiting;
  broker.log().scan([&](std::string_view group, std::string_view topic) { groups.emplace(group, topic); },
                    [&](const kept_message& one) {
                      waiting[std::string(one.id)] = {one.waiting_for.begin(), one.waiting_for.end()};
                    });
  EXPECT_EQ(groups, (std::set<std::pair<std::string, std::string>>{
                        {"mail", "orders"}, {"mail", "invoices"}, {"warehouse", "orders"}}));
  const auto id = [](int number, const char* topic) { return make_message(number, "k", topic).id; };
  EXPECT_EQ(waiting, (std::map<std::string, std::vector<std::string>>{
                         {id(1, "orders"), {"mail"}}, {id(2, "orders"), {"mail"}}, {id(3, "refunds"), {}}}));
}

}  // namespace
}  // namespace settle::test
