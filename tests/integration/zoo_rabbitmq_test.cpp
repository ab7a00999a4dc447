// The bugs of a RabbitMQ client that the zoo keeps, found by the checker.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/lanes.hpp"
#include "base/zoo.hpp"
#include "rabbitmq/topology.hpp"
#include "settle/driver/broker.hpp"
#include "settle/rabbitmq.hpp"
#include "settle/sqlite.hpp"
#include "settle/verify.hpp"
#include "support/rabbitmq_fixture.hpp"
#include "support/tcp_proxy.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

// A producer and a consumer by hand, so that their lines can break where it hurts: messages of one key, each
// with its cause in the effect log, and each applied once.
class shop {
 public:
  shop() {
    migrate(*db_);
    broker_ = open();
    member_ = broker_->subscribe({"warehouse", {"orders"}});
  }

  std::unique_ptr<broker> open() {
    return rabbitmq::open(with_port(rabbitmq_url(), line.port()), {.queues = 1, .prefix = corner_.prefix()});
  }

  // Until the broker has confirmed it, as a relay does.
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
    for (int tries = 0; tries < 100; ++tries)
      if (broker_->publishing().publish(std::vector{made})[0].status == publish_status::confirmed) return;
    throw std::runtime_error("not confirmed");
  }

  // Gives so many deliveries, as they come.
  std::vector<delivery> fetch(std::size_t count) {
    std::vector<delivery> all;
    for (int quiet = 0; all.size() < count && quiet < 150; ++quiet) {
      for (auto& one : member_->fetch(count - all.size()).deliveries) {
        all.push_back(std::move(one));
        quiet = 0;
      }
      if (all.size() < count) member_->arrivals().wait(20ms, {});
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
  void acknowledge(std::span<const delivery> done) {
    std::vector<delivery_tag> tags;
    for (const auto& one : done) tags.push_back(one.tag);
    member_->acknowledge(tags);
  }
  subscription& member() { return *member_; }

  // Somebody deletes the exchange of orders, and somebody makes it again, for one group.
  void make_exchange_again_for(const std::string& group) {
    const auto within = rabbitmq::limit::within(60s);
    rabbitmq::connection on(rabbitmq::parse_url(rabbitmq_url()), {}, "settle test", within);
    const rabbitmq::names called{corner_.prefix()};
    const auto exchange = called.exchange("orders");
    amqp_exchange_delete_t gone{};
    gone.exchange = rabbitmq::as_bytes(exchange);
    rabbitmq::channel(on, within).call(AMQP_EXCHANGE_DELETE_METHOD, gone, within);
    rabbitmq::topology at(on, called);
    at.declare_topic("orders", within);
    for (int lane = 0; lane < lane_count; ++lane)
      at.bind(called.queue(group, "orders", 0), "orders", std::to_string(lane), within);
  }

  // Whatever still comes, to a member that starts anew.
  void finish() {
    line.cut_all();
    member_ = broker_->subscribe({"warehouse", {"orders"}});
    apply(fetch(1000));
  }
  verify_report verify() { return settle::verify({.services = {db_.get()}}); }

  tcp_proxy line{"127.0.0.1", port_of(rabbitmq_url())};

 private:
  scratch_broker corner_;
  temp_dir dir_;
  std::unique_ptr<database> db_ = sqlite::open(dir_.file("shop.db"));
  std::unique_ptr<broker> broker_;
  std::unique_ptr<subscription> member_;
  std::set<std::string> applied_;
};

struct zoo_rabbitmq : ::testing::Test {
  void SetUp() override {
    if (const auto missing = rabbitmq_missing(); !missing.empty()) GTEST_SKIP() << missing;
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
  static void expect_all_applied(const verify_report& report) {
    EXPECT_TRUE(report.clean());
    EXPECT_EQ(report.applied, report.committed);
  }
};

void publish_over_a_line_that_breaks(shop& at) {
  at.publish(1);
  at.line.arm(tcp_proxy::to_server, tcp_proxy::cut, 40);  // in the middle of the message
  at.publish(2);
  at.publish(3);
}

// Proves V2, V3, O7
TEST_F(zoo_rabbitmq, sent_taken_for_confirmed_loses_and_is_found) {
  expect_all_applied(run_with(zoo::bug::none, publish_over_a_line_that_breaks));
  EXPECT_GT(run_with(zoo::bug::sent_taken_for_confirmed, publish_over_a_line_that_breaks).lost, 0);
}

void publish_to_an_exchange_that_was_made_again(shop& at) {
  at.open()->create_group("auditor", {"orders"});
  at.publish(1);
  at.make_exchange_again_for("auditor");
  at.publish(2);
}

// Proves V2, V3, O7: the server confirms what one group of two got
TEST_F(zoo_rabbitmq, exchange_taken_for_whole_loses_and_is_found) {
  expect_all_applied(run_with(zoo::bug::none, publish_to_an_exchange_that_was_made_again));
  EXPECT_EQ(run_with(zoo::bug::exchange_taken_for_whole, publish_to_an_exchange_that_was_made_again).lost, 1);
}

// Six messages on the first channel, of which five are acknowledged. On the second one the sixth message is
// another.
void acknowledge_after_a_new_channel(shop& at) {
  for (int i = 1; i <= 6; ++i) at.publish(i);
  const auto first = at.fetch(6);
  ASSERT_EQ(first.size(), 6u);
  at.apply(first);
  at.acknowledge(std::span(first).first(5));
  at.line.cut_all();
  for (int i = 7; i <= 11; ++i) at.publish(i);
  ASSERT_EQ(at.fetch(6).size(), 6u);
  at.acknowledge(std::span(first).last(1));
}

// Proves V2, V3, C1
TEST_F(zoo_rabbitmq, tag_of_an_old_channel_loses_and_is_found) {
  expect_all_applied(run_with(zoo::bug::none, acknowledge_after_a_new_channel));
  EXPECT_EQ(run_with(zoo::bug::tag_of_an_old_channel, acknowledge_after_a_new_channel).lost, 1);
}

// Three are taken and cannot run; the others are already here.
void give_back_what_cannot_run(shop& at) {
  for (int i = 1; i <= 10; ++i) at.publish(i);
  const auto taken = at.fetch(3);
  ASSERT_EQ(taken.size(), 3u);
  std::this_thread::sleep_for(300ms);  // the rest has come ahead
  at.member().doubt(taken[0].tag.partition);
  const auto again = at.fetch(10);
  EXPECT_EQ(again.size(), 10u);
  at.apply(again);
  at.acknowledge(again);
}

// Proves V2, V3, C8
TEST_F(zoo_rabbitmq, requeue_overtakes_reorders_and_is_found) {
  expect_all_applied(run_with(zoo::bug::none, give_back_what_cannot_run));
  const auto found = run_with(zoo::bug::requeue_overtakes, give_back_what_cannot_run);
  EXPECT_EQ(found.reordered, 3);
  EXPECT_EQ(found.applied, 10);
}

}  // namespace
}  // namespace settle::test
