// The part of the broker conformance suite that is about members of a group: acknowledgements, sessions,
// owners, and calls that end by their limits.
#include <algorithm>
#include <chrono>
#include <thread>

#include "conformance/broker_suite.hpp"
#include "settle/error.hpp"
#include "support/expect_error.hpp"

namespace settle::test {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using names = std::vector<std::string>;

namespace {

constexpr auto in_good_time = 5s;
constexpr auto without_owners = "this broker hands out single messages";

std::set<std::string> names_of(const std::vector<assigned_partition>& assigned) {
  std::set<std::string> all;
  for (const auto& one : assigned) all.insert(one.name);
  return all;
}

using limited_call = std::function<void(const call_limits&)>;

// Publishes, acknowledges and fetches on a broker that does not answer. Each call, made by `with_limits`,
// fails and ends soon.
void expect_calls_end(broker& at, subscription& member, const std::vector<delivery>& got,
                      const std::function<void(const limited_call&)>& with_limits) {
  const std::vector<message> more{make_message(2, "key-0")};
  const limited_call calls[] = {
      [&](const call_limits& limits) {
        const auto result = at.publishing().publish(more, limits).at(0);
        EXPECT_EQ(result.status, publish_status::destination_failed);
        EXPECT_FALSE(result.reason.empty());
      },
      [&](const call_limits& limits) {
        EXPECT_NE(code_of([&] { member.acknowledge(tags_of(got), limits); }), std::nullopt);
      },
      [&](const call_limits& limits) { EXPECT_NE(code_of([&] { member.fetch(1, limits); }), std::nullopt); },
  };
  for (const auto& call : calls) {
    const auto started = steady::now();
    with_limits(call);
    EXPECT_LT(steady::now() - started, in_good_time) << &call - calls;
  }
}

}  // namespace

// Proves C1
TEST_P(broker_conformance, what_a_vanished_member_did_not_acknowledge_is_delivered_again) {
  auto broker = open_with_group();
  publish_all(*broker, numbered(6, 3));
  {
    auto vanishing = broker->subscribe({"group", {"orders"}});
    const auto got = collect(*vanishing, 6);
    ASSERT_EQ(got.size(), 6u);
    for (const auto& one : got) EXPECT_FALSE(one.redelivered) << one.content.id;
  }  // without leave()
  storage().outlive_leases();
  auto next = broker->subscribe({"group", {"orders"}});
  const auto again = collect(*next, 6);
  EXPECT_EQ(id_set(again).size(), 6u);
  for (const auto& one : again) EXPECT_EQ(one.redelivered, !broker->traits().has_owners) << one.content.id;
}

// Proves C1
TEST_P(broker_conformance, what_was_acknowledged_is_not_delivered_again) {
  auto broker = open_with_group();
  publish_all(*broker, numbered(6, 3));
  {
    auto vanishing = broker->subscribe({"group", {"orders"}});
    vanishing->acknowledge(tags_of(collect(*vanishing, 6)));
    publish_all(*broker, {make_message(100, "key-0")});
  }
  storage().outlive_leases();
  auto next = broker->subscribe({"group", {"orders"}});
  EXPECT_EQ(ids_of(collect(*next, 1)), (names{make_message(100, "").id}));
  EXPECT_TRUE(drain(*next).empty());
}

TEST_P(broker_conformance, leaving_hands_over_at_once_and_keeps_what_was_acknowledged) {
  auto broker = open_with_group();
  publish_all(*broker, numbered(4, 1));
  auto leaving = broker->subscribe({"group", {"orders"}});
  const auto got = collect(*leaving, 4);
  leaving->acknowledge(tags_of({got.begin(), got.begin() + 2}));
  leaving->leave();
  auto next = broker->subscribe({"group", {"orders"}});
  EXPECT_EQ(ids_of(collect(*next, 2)), (names{make_message(2, "").id, make_message(3, "").id}));
}

TEST_P(broker_conformance, a_member_that_stays_takes_over_what_another_leaves) {
  auto broker = open(4);
  auto staying = broker->subscribe({"group", {"orders"}});
  auto leaving = broker->subscribe({"group", {"orders"}});
  rebalance({staying.get(), leaving.get()});
  leaving->leave();
  rebalance({staying.get()});
  publish_all(*broker, numbered(40, 20));
  EXPECT_EQ(id_set(collect(*staying, 40)).size(), 40u);
}

// Proves C4
TEST_P(broker_conformance, acknowledgement_in_any_order_loses_nothing_that_is_not_done) {
  auto broker = open_with_group();
  publish_all(*broker, numbered(5, 1));
  {
    auto vanishing = broker->subscribe({"group", {"orders"}});
    const auto got = collect(*vanishing, 5);
    ASSERT_EQ(got.size(), 5u);
    vanishing->acknowledge(tags_of({got[3], got[0], got[2]}));
  }
  storage().outlive_leases();
  auto next = broker->subscribe({"group", {"orders"}});
  const auto again = broker->traits().has_positions ? names{"1", "2", "3", "4"} : names{"1", "4"};
  const auto got = collect(*next, again.size());
  EXPECT_EQ(payloads_by_key(got).at("key-0"), again);
  EXPECT_TRUE(drain(*next).empty());
}

// Proves C4
TEST_P(broker_conformance, closing_the_gap_moves_over_everything_behind_it) {
  auto broker = open_with_group();
  publish_all(*broker, numbered(5, 1));
  {
    auto vanishing = broker->subscribe({"group", {"orders"}});
    const auto got = collect(*vanishing, 5);
    ASSERT_EQ(got.size(), 5u);
    vanishing->acknowledge(tags_of({got[1], got[2], got[3]}));
    vanishing->acknowledge(tags_of({got[0]}));
  }
  storage().outlive_leases();
  auto next = broker->subscribe({"group", {"orders"}});
  EXPECT_EQ(payloads_by_key(collect(*next, 1)).at("key-0"), (names{"4"}));
  EXPECT_TRUE(drain(*next).empty());
}

TEST_P(broker_conformance, acknowledging_twice_is_harmless) {
  auto broker = open_with_group();
  publish_all(*broker, numbered(2, 1));
  auto member = broker->subscribe({"group", {"orders"}});
  const auto got = collect(*member, 2);
  member->acknowledge(tags_of({got[0]}));
  member->acknowledge(tags_of({got[0], got[0]}));
  member->leave();
  auto next = broker->subscribe({"group", {"orders"}});
  EXPECT_EQ(payloads_by_key(collect(*next, 1)).at("key-0"), (names{"1"}));
}

// Proves C4: a consumer stopped past its lease and woken again
TEST_P(broker_conformance, a_member_that_slept_past_its_lease_learns_it_and_moves_nothing) {
  auto broker = open_with_group(1);
  publish_all(*broker, numbered(3, 1));
  auto sleeper = broker->subscribe({"group", {"orders"}});
  const auto held = collect(*sleeper, 3);
  ASSERT_EQ(held.size(), 3u);
  storage().outlive_leases();
  {
    auto heir = broker->subscribe({"group", {"orders"}});
    ASSERT_EQ(collect(*heir, 3).size(), 3u);
    sleeper->acknowledge(tags_of(held));
    const auto awake = sleeper->fetch(10);
    EXPECT_EQ(awake.revoked, (std::vector<std::uint32_t>{held[0].tag.partition}));
    EXPECT_TRUE(awake.deliveries.empty());
    EXPECT_TRUE(sleeper->fetch(10).revoked.empty()) << "a loss is reported once";
  }
  storage().outlive_leases();
  auto third = broker->subscribe({"group", {"orders"}});
  EXPECT_EQ(collect(*third, 3).size(), 3u) << "the sleeper's acknowledgement moved the position";
}

TEST_P(broker_conformance, a_member_learns_of_lost_partitions_by_fetching_alone) {
  auto broker = open_with_group(1);
  publish_all(*broker, numbered(1, 1));
  auto sleeper = broker->subscribe({"group", {"orders"}});
  const auto held = collect(*sleeper, 1);
  ASSERT_EQ(held.size(), 1u);
  storage().outlive_leases();
  auto heir = broker->subscribe({"group", {"orders"}});
  ASSERT_EQ(collect(*heir, 1).size(), 1u);
  EXPECT_EQ(sleeper->fetch(10).revoked, (std::vector<std::uint32_t>{held[0].tag.partition}));
}

TEST_P(broker_conformance,
       partitions_are_assigned_before_their_first_delivery_with_names_that_tell_them_apart) {
  auto broker = open_with_group(2, {"orders", "payments"});
  if (!broker->traits().has_owners) GTEST_SKIP() << without_owners;
  auto batch = numbered(40, 20);
  for (int i = 0; i < 20; ++i) batch.push_back(make_message(i, "key-" + std::to_string(i), "payments"));
  publish_all(*broker, batch);
  auto member = broker->subscribe({"group", {"orders", "payments"}});
  const auto all = fetch_all(*member);
  EXPECT_EQ(all.deliveries.size(), batch.size());
  EXPECT_EQ(all.assigned.size(), 4u);
  EXPECT_EQ(names_of(all.assigned).size(), 4u);
  std::set<std::uint32_t> numbers;
  for (const auto& one : all.assigned) numbers.insert(one.partition);
  EXPECT_EQ(numbers.size(), 4u);
}

TEST_P(broker_conformance, nothing_is_assigned_where_there_are_no_owners) {
  auto broker = open_with_group();
  if (broker->traits().has_owners) GTEST_SKIP() << "this broker has owners";
  publish_all(*broker, numbered(10, 5));
  auto member = broker->subscribe({"group", {"orders"}});
  const auto some = member->fetch(10);
  EXPECT_EQ(some.deliveries.size(), 10u);
  EXPECT_TRUE(some.assigned.empty());
}

// What a consumer's database knows of a partition has to be found by the next owner.
TEST_P(broker_conformance, a_partition_has_the_same_name_for_every_member_and_after_a_restart) {
  auto first = open_with_group(3, {"orders", "stock"});
  if (!first->traits().has_owners) GTEST_SKIP() << without_owners;
  for (int i = 0; i < 20; ++i)  // some brokers show whose a partition is by its first message
    for (const auto* topic : {"orders", "stock"})
      publish_all(*first, {make_message(i, "key-" + std::to_string(i), topic)});
  auto member = first->subscribe({"group", {"stock", "orders"}});
  const auto before = names_of(fetch_all(*member).assigned);
  EXPECT_EQ(before.size(), 6u);
  member->leave();
  auto second = open(3);
  auto other = second->subscribe({"group", {"orders", "stock"}});
  EXPECT_EQ(names_of(fetch_all(*other).assigned), before);
}

TEST_P(broker_conformance, every_assignment_is_a_session_of_its_own) {
  auto broker = open_with_group(1);
  if (!broker->traits().has_owners) GTEST_SKIP() << without_owners;
  publish_all(*broker, numbered(1, 1));
  auto member = broker->subscribe({"group", {"orders"}});
  std::set<std::uint32_t> sessions;
  for (int turn = 0; turn < 4; ++turn) {
    const auto all = fetch_all(*member);
    ASSERT_EQ(all.assigned.size(), 1u) << turn;
    ASSERT_EQ(all.deliveries.size(), 1u) << turn;
    sessions.insert(all.assigned[0].session);
    if (turn % 2 == 0)
      member->doubt(all.assigned[0].partition);
    else
      member->leave();
  }
  EXPECT_EQ(sessions.size(), 4u);
}

// Proves C4
TEST_P(broker_conformance, tags_of_an_ended_session_acknowledge_nothing) {
  auto broker = open_with_group(1);
  publish_all(*broker, numbered(3, 1));
  auto member = broker->subscribe({"group", {"orders"}});
  const auto before = collect(*member, 3);
  ASSERT_EQ(before.size(), 3u);
  if (broker->traits().has_owners)
    member->doubt(before[0].tag.partition);
  else
    storage().outlive_leases();
  const auto again = collect(*member, 3);
  ASSERT_EQ(ids_of(again), ids_of(before));
  EXPECT_NE(again[0].tag.session, before[0].tag.session);
  member->acknowledge(tags_of(before));
  member->leave();
  auto next = broker->subscribe({"group", {"orders"}});
  EXPECT_EQ(ids_of(collect(*next, 3)), ids_of(before));
}

TEST_P(broker_conformance,
       a_doubted_partition_that_is_still_ours_comes_again_with_what_was_not_acknowledged) {
  auto broker = open_with_group(1);
  if (!broker->traits().has_owners) GTEST_SKIP() << without_owners;
  publish_all(*broker, numbered(4, 1));
  auto member = broker->subscribe({"group", {"orders"}});
  const auto before = fetch_all(*member);
  ASSERT_EQ(before.deliveries.size(), 4u);
  member->acknowledge(tags_of({before.deliveries[0]}));
  member->doubt(before.assigned.at(0).partition);
  const auto again = fetch_all(*member);
  ASSERT_EQ(again.assigned.size(), 1u);
  EXPECT_EQ(again.assigned[0].name, before.assigned[0].name);
  EXPECT_NE(again.assigned[0].session, before.assigned[0].session);
  EXPECT_EQ(payloads_by_key(again.deliveries).at("key-0"), (names{"1", "2", "3"}));
  member->acknowledge(tags_of(again.deliveries));
  member->doubt(before.assigned[0].partition);
  EXPECT_TRUE(fetch_all(*member).deliveries.empty()) << "what was acknowledged in the second session counts";
}

TEST_P(broker_conformance, a_doubted_partition_that_is_not_ours_brings_nothing_more) {
  auto broker = open_with_group(1);
  if (!broker->traits().has_owners) GTEST_SKIP() << without_owners;
  publish_all(*broker, numbered(3, 1));
  auto sleeper = broker->subscribe({"group", {"orders"}});
  const auto before = fetch_all(*sleeper);
  ASSERT_EQ(before.deliveries.size(), 3u);
  storage().outlive_leases();
  auto heir = broker->subscribe({"group", {"orders"}});
  ASSERT_EQ(collect(*heir, 3).size(), 3u);
  sleeper->doubt(before.assigned.at(0).partition);
  const auto after = fetch_all(*sleeper);
  EXPECT_TRUE(after.assigned.empty());
  EXPECT_TRUE(after.deliveries.empty());
  heir->leave();
  std::vector<delivery> again;
  for (int round = 0; round < 4; ++round) {
    std::ranges::move(fetch_all(*sleeper).deliveries, std::back_inserter(again));
    storage().pass_a_heartbeat();
  }
  EXPECT_EQ(ids_of(again), ids_of(before.deliveries)) << "it is ours again";
}

// Proves C1: what is done is not repeated because of a rebalance
TEST_P(broker_conformance, before_a_partition_is_given_to_another_its_finished_work_can_be_acknowledged) {
  auto broker = open_with_group(4);
  if (!broker->traits().has_owners) GTEST_SKIP() << without_owners;
  publish_all(*broker, numbered(40, 20));
  std::unique_ptr<subscription> first;
  std::vector<delivery_tag> done;
  int asked = 0;
  first = broker->subscribe({"group", {"orders"}, [&] {
                               ++asked;
                               first->acknowledge(std::exchange(done, {}));
                             }});
  done = tags_of(collect(*first, 40));
  ASSERT_EQ(done.size(), 40u);
  auto second = broker->subscribe({"group", {"orders"}});
  std::vector<std::uint32_t> revoked;
  std::vector<delivery> repeated;
  for (int round = 0; round < 5; ++round) {
    std::ranges::move(first->fetch(100).revoked, std::back_inserter(revoked));
    storage().pass_a_heartbeat();
    std::ranges::move(second->fetch(100).deliveries, std::back_inserter(repeated));
  }
  EXPECT_GT(asked, 0);
  EXPECT_FALSE(revoked.empty()) << "the second member got nothing";
  EXPECT_EQ(repeated.size(), 0u);
}

TEST_P(broker_conformance, positions_of_a_partition_grow) {
  auto broker = open_with_group();
  publish_all(*broker, numbered(60, 20));
  auto member = broker->subscribe({"group", {"orders"}});
  std::map<std::uint32_t, log_position> latest;
  for (const auto& one : collect(*member, 60)) {
    if (!broker->traits().has_positions) {
      EXPECT_TRUE(one.at.empty());
      continue;
    }
    EXPECT_FALSE(one.at.empty());
    EXPECT_LT(latest[one.tag.partition], one.at) << one.content.id;
    latest[one.tag.partition] = one.at;
  }
}

// Proves C10: records of what may come again are kept
TEST_P(broker_conformance, what_is_settled_moves_with_acknowledgements_and_over_no_gap) {
  auto broker = open_with_group(1);
  publish_all(*broker, numbered(4, 1));
  auto member = broker->subscribe({"group", {"orders"}});
  const auto got = collect(*member, 4);
  ASSERT_EQ(got.size(), 4u);
  if (!broker->traits().has_positions) {
    member->acknowledge(tags_of(got));
    EXPECT_TRUE(member->settled().empty());
    return;
  }
  const auto through = [&] {
    const auto all = member->settled();
    EXPECT_EQ(all.size(), 1u);
    EXPECT_EQ(all.at(0).partition, got[0].tag.partition);
    return all.at(0).through;
  };
  EXPECT_LT(through(), got[0].at);
  member->acknowledge(tags_of({got[1]}));
  EXPECT_LT(through(), got[0].at);
  member->acknowledge(tags_of({got[0]}));
  EXPECT_GE(through(), got[1].at);
  EXPECT_LT(through(), got[2].at);
  member->acknowledge(tags_of({got[2], got[3]}));
  EXPECT_GE(through(), got[3].at);
}

// Proves C3: a broker that does not answer
TEST_P(broker_conformance, calls_to_a_broker_that_does_not_answer_end_within_their_limits) {
  auto broker = open_with_group(1);
  publish_all(*broker, numbered(2, 1));
  auto member = broker->subscribe({"group", {"orders"}});
  const auto got = collect(*member, 2);
  ASSERT_EQ(got.size(), 2u);
  if (!storage().hang(true)) GTEST_SKIP() << "this broker cannot be made to hang";
  expect_calls_end(*broker, *member, got, [](const limited_call& call) { call({.within = 100ms}); });
  storage().hang(false);
  member->fetch(0);  // tries the acknowledgement once more
  member->leave();
  auto next = broker->subscribe({"group", {"orders"}});
  EXPECT_FALSE(id_set(drain(*next)).contains(got[0].content.id)) << "it was acknowledged";
}

TEST_P(broker_conformance, calls_to_a_broker_that_does_not_answer_end_when_they_are_stopped) {
  auto broker = open_with_group(1);
  publish_all(*broker, numbered(1, 1));
  auto member = broker->subscribe({"group", {"orders"}});
  const auto got = collect(*member, 1);
  ASSERT_EQ(got.size(), 1u);
  if (!storage().hang(true)) GTEST_SKIP() << "this broker cannot be made to hang";
  expect_calls_end(*broker, *member, got, [](const limited_call& call) {
    std::stop_source stop;
    std::jthread stopper([&] {
      std::this_thread::sleep_for(20ms);
      stop.request_stop();
    });
    call({.within = 1h, .stop = stop.get_token()});
  });
  storage().hang(false);
}

// What a timeout waits for. Proves S3
TEST_P(broker_conformance,
       a_backlog_is_done_when_every_member_has_acknowledged_what_was_there_and_not_later) {
  auto broker = open_with_group();
  auto one = broker->subscribe({"group", {"orders"}});
  auto other = open();
  auto two = other->subscribe({"group", {"orders"}});
  rebalance({one.get(), two.get()});
  auto nothing = broker->backlog_of("group", {"orders"}, {});
  if (!nothing) GTEST_SKIP() << "this broker cannot tell";
  const auto ends = [&](backlog& which, int turns = 100) {
    for (int i = 0; i < turns; ++i) {
      one->fetch(0);
      two->fetch(0);
      if (which.is_done()) return true;
      if (quiet_time > duration::zero()) std::this_thread::sleep_for(10ms);
    }
    return false;
  };
  EXPECT_TRUE(ends(*nothing));
  publish_all(*broker, numbered(32, 16));
  auto all = broker->backlog_of("group", {"orders"}, {});
  EXPECT_FALSE(all->is_done());
  publish_all(*broker, {make_message(100, "later")});
  std::vector<delivery> first, second;
  for (int i = 0; i < 500 && first.size() + second.size() < 33; ++i) {
    std::ranges::move(one->fetch(10).deliveries, std::back_inserter(first));
    std::ranges::move(two->fetch(10).deliveries, std::back_inserter(second));
    if (quiet_time > duration::zero()) std::this_thread::sleep_for(10ms);
  }
  ASSERT_EQ(first.size() + second.size(), 33U);
  ASSERT_FALSE(first.empty() || second.empty());
  const auto came_later = [](const delivery& it) { return it.content.key == "later"; };
  std::erase_if(first, came_later);
  std::erase_if(second, came_later);
  EXPECT_FALSE(ends(*all, 10)) << "nothing is acknowledged";
  one->acknowledge(tags_of(first));
  EXPECT_FALSE(ends(*all, 10)) << "the other member still has some";
  two->acknowledge(tags_of(second));
  EXPECT_TRUE(ends(*all)) << "what came later does not count";
}

}  // namespace settle::test
