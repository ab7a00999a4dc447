#include "conformance/broker_suite.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle::test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using steady = std::chrono::steady_clock;
using names = std::vector<std::string>;

namespace {

constexpr auto in_good_time = 5s;
constexpr duration longest_wait = 10s;

// Something, unless nothing comes for the quiet time.
fetched fetch_unless_quiet(subscription& from) {
  const auto until = steady::now() + quiet_time;
  while (true) {
    auto some = from.fetch(100);
    const auto left = std::chrono::duration_cast<duration>(until - steady::now());
    if (!some.deliveries.empty() || !some.assigned.empty() || !some.revoked.empty() ||
        left <= duration::zero())
      return some;
    from.arrivals().wait(left, {});
  }
}

void expect_growing(const names& payloads, const std::string& key) {
  for (std::size_t i = 1; i < payloads.size(); ++i)
    EXPECT_LT(std::stoi(payloads[i - 1]), std::stoi(payloads[i])) << key;
}

}  // namespace

message make_message(int number, const std::string& key, const std::string& topic) {
  message made;
  made.id = "event-" + topic + "-" + std::to_string(number);
  made.source = "settle:test";
  made.type = "order.placed";
  made.topic = topic;
  made.key = key;
  made.content_type = "text/plain";
  made.time = timestamp(1'700'000'000s);
  made.payload = std::to_string(number);
  return made;
}

std::vector<message> numbered(int count, int keys) {
  std::vector<message> batch;
  for (int i = 0; i < count; ++i) batch.push_back(make_message(i, "key-" + std::to_string(i % keys)));
  return batch;
}

void publish_all(broker& to, const std::vector<message>& batch) {
  const auto results = to.publishing().publish(batch);
  ASSERT_EQ(results.size(), batch.size());
  for (const auto& result : results) ASSERT_EQ(result.status, publish_status::confirmed) << result.reason;
}

std::vector<delivery> collect(subscription& from, std::size_t count) {
  std::vector<delivery> all;
  const auto deadline = steady::now() + longest_wait;
  while (all.size() < count && steady::now() < deadline) {
    auto more = from.fetch(count).deliveries;
    if (more.empty()) from.arrivals().wait(100ms, {});
    std::ranges::move(more, std::back_inserter(all));
  }
  return all;
}

std::vector<delivery> drain(subscription& from) {
  std::vector<delivery> all;
  while (true) {
    auto some = fetch_unless_quiet(from);
    if (some.deliveries.empty() && some.assigned.empty() && some.revoked.empty()) return all;
    std::ranges::move(some.deliveries, std::back_inserter(all));
  }
}

std::vector<delivery_tag> tags_of(const std::vector<delivery>& deliveries) {
  std::vector<delivery_tag> tags;
  for (const auto& one : deliveries) tags.push_back(one.tag);
  return tags;
}

names ids_of(const std::vector<delivery>& deliveries) {
  names ids;
  for (const auto& one : deliveries) ids.push_back(one.content.id);
  return ids;
}

std::set<std::string> id_set(const std::vector<delivery>& deliveries) {
  const auto ids = ids_of(deliveries);
  return {ids.begin(), ids.end()};
}

std::map<std::string, names> payloads_by_key(const std::vector<delivery>& deliveries) {
  std::map<std::string, names> by_key;
  for (const auto& one : deliveries) by_key[one.content.key].push_back(one.content.payload);
  return by_key;
}

everything_fetched fetch_all(subscription& from) {
  everything_fetched all;
  while (true) {
    auto some = fetch_unless_quiet(from);
    std::ranges::move(some.revoked, std::back_inserter(all.revoked));
    std::ranges::move(some.assigned, std::back_inserter(all.assigned));
    for (auto& one : some.deliveries) {
      const auto is_its_session = [&](const auto& a) {
        return a.partition == one.tag.partition && a.session == one.tag.session;
      };
      EXPECT_EQ(std::ranges::count_if(all.assigned, is_its_session), 1) << one.content.id;
      all.deliveries.push_back(std::move(one));
    }
    if (some.deliveries.empty() && some.assigned.empty()) return all;
  }
}

std::unique_ptr<broker> broker_conformance::open_with_group(int partitions, const names& topics) {
  auto opened = open(partitions);
  if (!opened->traits().replays_from_the_beginning) opened->subscribe({"group", topics})->leave();
  return opened;
}

void broker_conformance::rebalance(const std::vector<subscription*>& members) {
  for (int round = 0; round < 3; ++round) {
    for (auto* member : members) member->fetch(0);
    storage().pass_a_heartbeat();
  }
  for (auto* member : members) member->fetch(0);
}

// Proves O7, O8
TEST_P(broker_conformance, a_confirmed_message_arrives_with_every_attribute_and_byte) {
  auto broker = open_with_group();
  auto sent = make_message(1, "customer-東京");
  sent.subject = "order/42";
  sent.content_type = "application/octet-stream";
  sent.time = timestamp(duration(1'700'000'000'123'456));
  sent.extensions = {
      {"correlationid", "c-1"}, {"note", "Zürich \"quoted\" \\ \xf0\x9f\x9a\x80"}, {"empty", ""}};
  sent.payload.clear();
  for (int byte = 0; byte < 256; ++byte) sent.payload += static_cast<char>(byte);
  publish_all(*broker, {sent});
  auto member = broker->subscribe({"group", {"orders"}});
  const auto got = collect(*member, 1);
  ASSERT_EQ(got.size(), 1u);
  const auto& m = got[0].content;
  EXPECT_EQ(m.id, sent.id);
  EXPECT_EQ(m.source, sent.source);
  EXPECT_EQ(m.type, sent.type);
  EXPECT_EQ(m.topic, sent.topic);
  EXPECT_EQ(m.key, sent.key);
  EXPECT_EQ(m.subject, sent.subject);
  EXPECT_EQ(m.content_type, sent.content_type);
  EXPECT_EQ(m.time, sent.time);
  EXPECT_EQ(m.extensions, sent.extensions);
  EXPECT_EQ(m.payload, sent.payload);
}

TEST_P(broker_conformance, empty_key_subject_and_payload_arrive_empty) {
  auto broker = open_with_group();
  auto sent = make_message(1, "");
  sent.payload = "";
  publish_all(*broker, {sent});
  auto member = broker->subscribe({"group", {"orders"}});
  const auto got = collect(*member, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].content.key, "");
  EXPECT_EQ(got[0].content.subject, "");
  EXPECT_EQ(got[0].content.payload, "");
  EXPECT_TRUE(got[0].content.extensions.empty());
}

TEST_P(broker_conformance, publishing_nothing_gives_no_results) {
  auto broker = open();
  EXPECT_TRUE(broker->publishing().publish({}).empty());
}

// Proves O4
TEST_P(broker_conformance, messages_of_one_key_arrive_in_the_order_they_were_published) {
  auto broker = open_with_group();
  if (!broker->traits().keeps_keys_together) GTEST_SKIP() << "this broker does not keep keys together";
  constexpr int keys = 7, count = 140;
  const auto all = numbered(count, keys);
  for (int from = 0; from < count; from += 20)
    publish_all(*broker, {all.begin() + from, all.begin() + from + 20});
  auto member = broker->subscribe({"group", {"orders"}});
  std::vector<delivery> got;
  while (got.size() < count) {  // small fetches, so that the order has to hold across them
    auto more = collect(*member, std::min<std::size_t>(11, count - got.size()));
    ASSERT_FALSE(more.empty());
    std::ranges::move(more, std::back_inserter(got));
  }
  const auto by_key = payloads_by_key(got);
  ASSERT_EQ(by_key.size(), static_cast<std::size_t>(keys));
  for (const auto& [key, payloads] : by_key) expect_growing(payloads, key);
}

TEST_P(broker_conformance, every_group_gets_everything) {
  auto broker = open();
  auto first = broker->subscribe({"first", {"orders"}});
  auto second = broker->subscribe({"second", {"orders"}});
  publish_all(*broker, numbered(20, 5));
  EXPECT_EQ(id_set(collect(*first, 20)).size(), 20u);
  EXPECT_EQ(id_set(collect(*second, 20)).size(), 20u);
}

TEST_P(broker_conformance, a_group_that_comes_later_gets_the_earlier_messages_if_the_broker_says_so) {
  auto broker = open_with_group();
  publish_all(*broker, numbered(5));
  auto early = broker->subscribe({"group", {"orders"}});
  early->acknowledge(tags_of(collect(*early, 5)));
  auto late = broker->subscribe({"late", {"orders"}});
  publish_all(*broker, {make_message(100, "a")});
  if (broker->traits().replays_from_the_beginning) {
    EXPECT_EQ(collect(*late, 6).size(), 6u);
  } else {
    EXPECT_EQ(ids_of(collect(*late, 1)), (names{make_message(100, "").id}));
    EXPECT_TRUE(drain(*late).empty());
  }
}

TEST_P(broker_conformance, a_subscription_gets_its_topics_and_no_others) {
  auto broker = open_with_group(4, {"orders", "stock"});
  publish_all(*broker, {make_message(1, "a", "orders"), make_message(2, "a", "payments"),
                        make_message(3, "a", "stock")});
  auto member = broker->subscribe({"group", {"orders", "stock"}});
  const auto got = collect(*member, 2);
  std::set<std::string> topics;
  for (const auto& one : got) topics.insert(one.content.topic);
  EXPECT_EQ(topics, (std::set<std::string>{"orders", "stock"}));
  EXPECT_TRUE(drain(*member).empty());
  member->acknowledge(tags_of(got));
  EXPECT_TRUE(drain(*member).empty());
}

TEST_P(broker_conformance, two_members_share_the_work_and_get_each_message_once) {
  auto broker = open(8);
  auto one = broker->subscribe({"group", {"orders"}});
  auto two = broker->subscribe({"group", {"orders"}});
  rebalance({one.get(), two.get()});
  constexpr int count = 200;
  publish_all(*broker, numbered(count, 50));
  std::vector<delivery> first, second;
  const auto deadline = steady::now() + longest_wait;
  while (first.size() + second.size() < count && steady::now() < deadline) {
    std::ranges::move(one->fetch(10).deliveries, std::back_inserter(first));
    std::ranges::move(two->fetch(10).deliveries, std::back_inserter(second));
  }
  EXPECT_FALSE(first.empty());
  EXPECT_FALSE(second.empty());
  EXPECT_EQ(first.size() + second.size(), static_cast<std::size_t>(count));
  auto all = id_set(first);
  all.merge(id_set(second));
  EXPECT_EQ(all.size(), static_cast<std::size_t>(count));
  if (!broker->traits().keeps_keys_together) return;
  const auto keys_of_second = payloads_by_key(second);
  for (const auto& [key, unused] : payloads_by_key(first)) EXPECT_FALSE(keys_of_second.contains(key)) << key;
}

TEST_P(broker_conformance, fetch_brings_no_more_than_asked_for_and_nothing_twice) {
  auto broker = open_with_group();
  publish_all(*broker, numbered(10, 4));
  auto member = broker->subscribe({"group", {"orders"}});
  EXPECT_TRUE(member->fetch(0).deliveries.empty());
  std::vector<delivery> got;
  const auto deadline = steady::now() + longest_wait;
  while (got.size() < 10 && steady::now() < deadline) {
    auto some = member->fetch(3).deliveries;
    EXPECT_LE(some.size(), 3u);
    std::ranges::move(some, std::back_inserter(got));
  }
  EXPECT_EQ(id_set(got).size(), 10u);
  EXPECT_TRUE(member->fetch(3).deliveries.empty());
}

// Proves C3's rule: the message's fault and the destination's fault are told apart
TEST_P(broker_conformance, a_message_with_an_impossible_topic_is_rejected_alone) {
  auto broker = open_with_group();
  for (const auto& topic : {""s, "with\nnewline"s, "nul\0inside"s, "\xff"s, std::string(256, 't')}) {
    auto bad = make_message(1, "bad");
    bad.topic = topic;
    const std::vector<message> batch{make_message(0, "a"), bad, make_message(2, "b")};
    const auto results = broker->publishing().publish(batch);
    ASSERT_EQ(results.size(), 3u);
    EXPECT_EQ(results[0].status, publish_status::confirmed) << results[0].reason;
    EXPECT_EQ(results[1].status, publish_status::message_rejected);
    EXPECT_FALSE(results[1].reason.empty());
    EXPECT_EQ(results[2].status, publish_status::confirmed) << results[2].reason;
  }
  auto member = broker->subscribe({"group", {"orders"}});
  EXPECT_EQ(collect(*member, 10).size(), 10u);
}

// Proves O4
TEST_P(broker_conformance, behind_a_rejected_message_nothing_of_its_topic_and_key_is_stored_and_all_else_is) {
  auto broker = open();
  auto bad = make_message(0, "k");
  bad.type = "new\nline";
  const std::vector<message> batch{bad, make_message(1, "k"), make_message(2, "k", "payments"),
                                   make_message(3, "other")};
  const auto results = broker->publishing().publish(batch);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].status, publish_status::message_rejected);
  EXPECT_NE(results[1].status, publish_status::confirmed) << "it would overtake the first";
  EXPECT_EQ(results[2].status, publish_status::confirmed) << "another topic has an order of its own";
  EXPECT_EQ(results[3].status, publish_status::confirmed);
}

TEST_P(broker_conformance, a_subscription_without_a_group_or_topics_is_refused) {
  auto broker = open();
  EXPECT_EQ(code_of([&] { broker->subscribe({"", {"orders"}}); }), errc::invalid_name);
  EXPECT_EQ(code_of([&] { broker->subscribe({"group", {}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { broker->subscribe({"group", {"bad\ntopic"}}); }), errc::invalid_name);
}

TEST_P(broker_conformance, two_connections_see_each_others_messages_and_members) {
  auto here = open();
  auto there = open();
  auto listener = there->subscribe({"group", {"orders"}});
  publish_all(*here, numbered(3, 3));
  listener->acknowledge(tags_of(collect(*listener, 3)));
  listener->leave();
  publish_all(*there, {make_message(100, "a")});
  auto next = here->subscribe({"group", {"orders"}});
  EXPECT_EQ(ids_of(collect(*next, 1)), (names{make_message(100, "").id}));
}

TEST_P(broker_conformance, many_threads_may_publish_through_one_publisher) {
  auto broker = open_with_group();
  constexpr int threads = 8, each = 20;
  {
    std::vector<std::jthread> publishers;
    for (int t = 0; t < threads; ++t)
      publishers.emplace_back([&, t] {
        for (int i = 0; i < each; ++i)
          publish_all(*broker, {make_message(t * each + i, "key-" + std::to_string(t))});
      });
  }
  auto member = broker->subscribe({"group", {"orders"}});
  const auto got = collect(*member, threads * each);
  EXPECT_EQ(id_set(got).size(), static_cast<std::size_t>(threads * each));
  if (!broker->traits().keeps_keys_together) return;
  for (const auto& [key, payloads] : payloads_by_key(got)) expect_growing(payloads, key);
}

TEST_P(broker_conformance, arrivals_wake_a_member_when_something_is_published) {
  auto here = open();
  auto there = open();
  auto member = here->subscribe({"group", {"orders"}});
  member->fetch(10);
  const auto started = steady::now();
  std::jthread publisher([&] { publish_all(*there, {make_message(1, "a")}); });
  while (member->fetch(10).deliveries.empty() && steady::now() - started < in_good_time)
    member->arrivals().wait(longest_wait, {});
  EXPECT_LT(steady::now() - started, in_good_time);
}

// Large enough for a broker that reads ahead. Proves O4
TEST_P(broker_conformance, a_backlog_is_delivered_whole_and_in_order_while_more_arrives) {
  auto broker = open_with_group();
  constexpr int count = 6000, keys = 16;
  const auto sent = numbered(count, keys);
  const auto publish_part = [&](int from, int upto) {
    publish_all(*broker, {sent.begin() + from, sent.begin() + upto});
  };
  publish_part(0, count / 2);
  auto member = broker->subscribe({"group", {"orders"}});
  std::vector<delivery> got;
  std::vector<std::size_t> sizes{300, 300, 300, 256, 0, 400, 300, 10};
  int published = count / 2;
  for (int turn = 0; got.size() < count && turn < 1000; ++turn) {
    auto more = member->fetch(sizes[turn % sizes.size()]).deliveries;
    if (more.empty() && published == count) member->arrivals().wait(10ms, {});
    std::ranges::move(more, std::back_inserter(got));
    if (published < count) publish_part(published, published + 100), published += 100;
  }
  ASSERT_EQ(got.size(), sent.size());
  EXPECT_EQ(id_set(got).size(), sent.size());
  if (!broker->traits().keeps_keys_together) return;
  for (const auto& [key, payloads] : payloads_by_key(got))
    for (std::size_t i = 1; i < payloads.size(); ++i)
      EXPECT_EQ(std::stoi(payloads[i - 1]) + keys, std::stoi(payloads[i])) << key;
}

}  // namespace settle::test
