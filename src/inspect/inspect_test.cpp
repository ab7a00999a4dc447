#include <gtest/gtest.h>

#include "inspect/broker.hpp"
#include "inspect/dead_letters.hpp"
#include "inspect/service.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

class inspecting : public ::testing::Test {
 protected:
  inspecting() {
    env_.time = &time_;
    env_.log = &log_;
    db_ = sqlite::open(dir_.file("service.db"), {.env = env_});
    migrate(*db_);
    broker_ = sqlite::open_broker(dir_.file("broker.db"), {.env = env_, .partitions = 2});
  }

  void emit(const std::string& key, std::optional<timestamp> deliver_at = std::nullopt) {
    auto tx = db_->begin();
    publish(tx, event{.topic = "orders", .type = "order.placed", .key = key}, {.deliver_at = deliver_at});
    tx.commit();
  }

  void run(const std::string& sql, std::initializer_list<value> with = {}) {
    auto tx = db_->begin();
    tx.execute(sql, with);
    tx.commit();
  }

  void give_up(const std::string& consumer, const std::string& reason, const std::string& status) {
    run("insert into settle_dlq_events (consumer, consumer_version, status, reason, error, attempts, "
        "history, "
        "failed_at, blocks_key, topic, message_key, log, position, message_id, source, event_type, subject, "
        "content_type, event_time, extensions, payload) values ($1, '', $2, $3, '', 5, '[]', 0, 0, 'orders', "
        "'c', 'orders/0', 1, 'm', '', 'order.placed', '', '', 0, '', x'')",
        {consumer, status, reason});
  }

  test::temp_dir dir_;
  testing::manual_time time_;
  test::quiet_log log_;
  environment env_;
  std::unique_ptr<database> db_;
  std::unique_ptr<broker> broker_;
};

// Proves D7
TEST_F(inspecting, an_outbox_tells_what_waits_and_for_how_long) {
  EXPECT_EQ(inspect::read_backlog(*db_).pending, 0);
  EXPECT_EQ(inspect::read_backlog(*db_).oldest_age(time_.now()), std::nullopt);
  emit("a");
  time_.advance(5s);
  emit("b");
  const auto backlog = inspect::read_backlog(*db_);
  EXPECT_EQ(backlog.pending, 2);
  EXPECT_EQ(backlog.oldest_age(time_.now()), 5s);
  EXPECT_EQ(backlog.oldest_age(time_.now() - 1h), duration::zero()) << "a clock was set back";
  EXPECT_EQ(inspect::read_backlog(*db_, 1).pending, 1) << "up to a number";
}

TEST_F(inspecting, what_is_delayed_or_was_given_up_is_not_pending) {
  emit("late", time_.now() + 1h);
  emit("bad");
  relay one(*db_, broker_->publishing());
  while (one.run_once()) {
  }
  one.leave();
  auto backlog = inspect::read_backlog(*db_);
  EXPECT_EQ(backlog.pending, 0);
  EXPECT_EQ(backlog.delayed, 1);
  run("update settle_outbox_held set status = 'FAILED', attempts = 5");
  backlog = inspect::read_backlog(*db_);
  EXPECT_EQ(backlog.delayed, 0);
  EXPECT_EQ(backlog.failed, 1);
  EXPECT_EQ(backlog.oldest, std::nullopt);
}

TEST_F(inspecting, a_share_that_fails_is_blocked_only_while_something_waits_in_it) {
  run("update settle_shares set failures = 3, last_error = 'no' where scope = 'outbox'");
  run("insert into settle_shares (scope, share, failures, last_error) select 'outbox', value, 3, 'no' from "
      "json_each('[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]') where true on conflict do nothing");
  EXPECT_TRUE(inspect::read_blocked(*db_).empty());
  emit("a");
  const auto blocked = inspect::read_blocked(*db_);
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_EQ(blocked[0].waiting, 1);
  EXPECT_EQ(blocked[0].failures, 3);
  EXPECT_EQ(blocked[0].last_error, "no");
}

TEST_F(inspecting, a_service_tells_its_consumers_and_what_each_leaves_undone) {
  run("insert into settle_processed_events (consumer, message_id, topic, event_type, processed_at) values "
      "('mail', 'm1', 'orders', 'order.placed', 0), ('mail', 'm2', 'orders', 'order.placed', 0)");
  give_up("warehouse", "exhausted", "NEW");
  give_up("warehouse", "exhausted", "REPLAYED");
  emit("a");
  const auto state = inspect::read_service(*db_);
  EXPECT_EQ(state.backlog.pending, 1);
  EXPECT_EQ(state.published, 0);
  EXPECT_EQ(state.relaying.alive, 0);
  EXPECT_FALSE(state.cluster_changed);
  ASSERT_EQ(state.consumers.size(), 2u);
  EXPECT_EQ(state.consumers[0].consumer, "mail");
  EXPECT_EQ(state.consumers[0].dedup_records, 2);
  EXPECT_EQ(state.consumers[1].consumer, "warehouse");
  EXPECT_EQ(state.consumers[1].dead_letters, 1) << "one was replayed";
}

TEST_F(inspecting, relays_are_counted_while_their_leases_run) {
  relay one(*db_, broker_->publishing());
  one.run_once();
  EXPECT_EQ(inspect::read_service(*db_).relaying.alive, 1);
  EXPECT_EQ(inspect::read_service(*db_).relaying.shares_owned, 16);
  time_.advance(1h);
  EXPECT_EQ(inspect::read_service(*db_).relaying.alive, 0);
}

TEST_F(inspecting, a_broker_lists_its_topics_by_name) {
  std::vector<message> batch(2);
  batch[0].id = "1";
  batch[0].topic = "z";
  batch[1].id = "2";
  batch[1].topic = "a";
  broker_->publishing().publish(batch);
  broker_->subscribe({"mail", {"z"}})->leave();
  const auto state = inspect::read_broker(*broker_->inspection());
  EXPECT_EQ(state.name, dir_.file("broker.db"));
  EXPECT_GT(state.bytes, 0);
  ASSERT_EQ(state.topics.size(), 2u);
  EXPECT_EQ(state.topics[0].name, "a");
  ASSERT_EQ(state.groups.size(), 1u);
  EXPECT_EQ(state.groups[0].lag, 1);
}

// Proves D3
TEST_F(inspecting, a_plan_of_a_replay_counts_what_matches_and_what_it_spares) {
  give_up("warehouse", "exhausted", "NEW");
  give_up("warehouse", "exhausted", "REPLAYED");
  give_up("warehouse", "beyond_dedup_horizon", "NEW");
  dead_letter_filter which;
  which.status = dead_letter_status::fresh;
  const auto plan = inspect::plan_replay(*db_, which, 1min, 10);
  EXPECT_EQ(plan.matching, 1);
  EXPECT_EQ(plan.left_out, 1);
  ASSERT_EQ(plan.first.size(), 1u);
  EXPECT_EQ(plan.first[0].consumer, "warehouse");
  EXPECT_TRUE(inspect::plan_replay(*db_, which, 1min, 0).first.empty());
  const auto discard = inspect::plan_discard(*db_, which, 1);
  EXPECT_EQ(discard.matching, 2) << "a discard spares none";
  EXPECT_EQ(discard.first.size(), 1u);
}

TEST_F(inspecting, a_service_is_told_from_other_databases) {
  EXPECT_TRUE(inspect::is_service_database(*db_));
  EXPECT_FALSE(inspect::is_service_database(*sqlite::open(dir_.file("empty.db"))));
  EXPECT_EQ(inspect::read_database_id(*db_).size(), 32u);
}

}  // namespace
}  // namespace settle
