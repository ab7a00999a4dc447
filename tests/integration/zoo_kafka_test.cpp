// The bugs of a Kafka client that the zoo keeps, found by the checker.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "base/zoo.hpp"
#include "settle/driver/broker.hpp"
#include "settle/kafka.hpp"
#include "settle/sqlite.hpp"
#include "settle/verify.hpp"
#include "support/kafka_fixture.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

// A producer and members by hand, so that they can end where it hurts: messages of one key, each with its
// cause in the effect log, and each applied once.
class shop {
 public:
  shop() { migrate(*db_); }

  void publish(int number) {
    message made;
    const auto id = db_->env().ids->next_as<event_id>();
    made.id = id.text();
    made.topic = "orders";
    made.source = "test";
    made.type = "order.placed";
    made.key = "customer";
    made.payload = std::to_string(number);
    auto tx = db_->begin();
    note_committed(tx, {.topic = made.topic, .key = made.key, .subject = made.payload, .event = id});
    tx.commit();
    const auto result = broker_->publishing().publish(std::vector{made})[0];
    if (result.status != publish_status::confirmed) throw std::runtime_error(result.reason);
  }

  std::unique_ptr<subscription> join() { return broker_->subscribe({"warehouse", {"orders"}}); }

  // Gives so many deliveries, if they come.
  static std::vector<delivery> fetch(subscription& by, std::size_t count) {
    std::vector<delivery> all;
    for (int quiet = 0; all.size() < count && quiet < 150; ++quiet) {
      for (auto& one : by.fetch(count - all.size()).deliveries) {
        all.push_back(std::move(one));
        quiet = 0;
      }
      if (all.size() < count) by.arrivals().wait(20ms, {});
    }
    return all;
  }
  void apply(const std::vector<delivery>& all) {
    for (const auto& one : all) {
      if (!applied_.insert(one.content.id).second) continue;
      auto tx = db_->begin();
      note_applied(tx, "warehouse",
                   {.topic = "orders", .key = one.content.key, .subject = one.content.payload});
      tx.commit();
    }
  }
  static void acknowledge(subscription& by, const std::vector<delivery>& done) {
    std::vector<delivery_tag> tags;
    for (const auto& one : done) tags.push_back(one.tag);
    by.acknowledge(tags);
  }

  // Whatever still comes, to a member that starts anew.
  void finish() {
    const auto last = join();
    apply(fetch(*last, 1000));
  }
  verify_report verify() { return settle::verify({.services = {db_.get()}}); }
  const kafka_corner& corner() const { return corner_; }

 private:
  kafka_corner corner_;
  temp_dir dir_;
  std::unique_ptr<database> db_ = sqlite::open(dir_.file("shop.db"));
  std::unique_ptr<broker> broker_ =
      kafka::open(kafka_url(), {.partitions = 1, .session_timeout = 1s, .prefix = corner_.prefix()});
  std::set<std::string> applied_;
};

struct zoo_kafka : ::testing::Test {
  void SetUp() override {
    if (const auto missing = kafka_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  void TearDown() override { zoo::present = zoo::bug::none; }

  static verify_report run_with(zoo::bug which, const std::function<void(shop&)>& scenario) {
    shop one;
    zoo::present = which;
    scenario(one);
    zoo::present = zoo::bug::none;
    one.finish();
    return one.verify();
  }
  // Without the bug everything is applied; with it the checker misses something.
  static void expect_found(zoo::bug which, const std::function<void(shop&)>& scenario, std::int64_t lost) {
    const auto healthy = run_with(zoo::bug::none, scenario);
    EXPECT_TRUE(healthy.clean());
    EXPECT_EQ(healthy.applied, healthy.committed);
    EXPECT_EQ(run_with(which, scenario).lost, lost);
  }
};

// Proves V2, V3, C4
TEST_F(zoo_kafka, offset_before_effects_loses_and_is_found) {
  const auto end_between_fetch_and_effects = [](shop& at) {
    for (int i = 1; i <= 6; ++i) at.publish(i);
    const auto member = at.join();
    ASSERT_EQ(shop::fetch(*member, 6).size(), 6u);
  };
  expect_found(zoo::bug::offset_before_effects, end_between_fetch_and_effects, 6);
}

// Proves V2, V3, C4
TEST_F(zoo_kafka, auto_commit_left_on_loses_and_is_found) {
  const auto wait_between_fetch_and_effects = [](shop& at) {
    for (int i = 1; i <= 6; ++i) at.publish(i);
    const auto member = at.join();
    ASSERT_EQ(shop::fetch(*member, 6).size(), 6u);
    for (int i = 0; i < 50 && at.corner().standing_of("warehouse", "orders")[0].lag > 0; ++i) {
      member->fetch(0);
      member->arrivals().wait(20ms, {});
    }
  };
  expect_found(zoo::bug::auto_commit_left_on, wait_between_fetch_and_effects, 6);
}

// Proves V2, V3, C4
TEST_F(zoo_kafka, commit_of_a_revoked_partition_loses_and_is_found) {
  const auto acknowledge_after_it_was_revoked = [](shop& at) {
    for (int i = 1; i <= 6; ++i) at.publish(i);
    const auto first = at.join();
    const auto held = shop::fetch(*first, 6);
    ASSERT_EQ(held.size(), 6u);
    first->doubt(held[0].tag.partition);  // the session ends; what it was given is not applied
    shop::acknowledge(*first, held);
  };
  expect_found(zoo::bug::commit_of_a_revoked_partition, acknowledge_after_it_was_revoked, 6);
}

// Proves V2, V3, C2
TEST_F(zoo_kafka, reset_to_latest_loses_and_is_found) {
  const auto publish_before_the_group_comes = [](shop& at) {
    for (int i = 1; i <= 6; ++i) at.publish(i);
    at.join()->leave();
  };
  expect_found(zoo::bug::reset_to_latest, publish_before_the_group_comes, 6);
}

}  // namespace
}  // namespace settle::test
