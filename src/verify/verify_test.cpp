#include "settle/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "dead_letter/shared.hpp"
#include "outbox/shared.hpp"
#include "settle/dead_letter.hpp"
#include "settle/driver/broker.hpp"
#include "settle/driver/broker_inspection.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

// Says yes and keeps nothing.
class lying_publisher final : public publisher {
 public:
  std::vector<publish_result> publish(std::span<const message> batch, const call_limits&) override {
    return std::vector<publish_result>(batch.size());
  }
};

class checker : public ::testing::Test {
 protected:
  checker() {
    env_.time = &time_;
    env_.log = &log_;
    orders_ = open("orders.db");
    warehouse_ = open("warehouse.db");
    broker_ = sqlite::open_broker(dir_.file("broker.db"), {.env = env_, .partitions = 2});
  }

  std::unique_ptr<database> open(const std::string& name) {
    auto db = sqlite::open(dir_.file(name), {.env = env_});
    migrate(*db);
    return db;
  }

  static effect about(const std::string& order, const std::string& customer = "c") {
    return {.topic = "orders", .key = customer, .subject = order};
  }

  // Commits the cause and its event, as a service should.
  event_id place(const std::string& order, const std::string& customer = "c") {
    event what;
    what.topic = "orders";
    what.type = "order.placed";
    what.key = customer;
    what.payload = order;
    auto tx = orders_->begin();
    const auto id = publish(tx, what);
    auto cause = about(order, customer);
    cause.event = id;
    note_committed(tx, cause);
    tx.commit();
    return id;
  }

  // As a service that does not note which event it has published.
  event_id place_without_id(const std::string& order) {
    auto tx = orders_->begin();
    const auto id = publish(tx, {.topic = "orders", .type = "order.placed", .key = "c", .payload = order});
    note_committed(tx, about(order));
    tx.commit();
    return id;
  }

  void give_up(const std::string& consumer, const std::string& message, const std::string& status) {
    auto tx = warehouse_->begin();
    tx.execute(
        "insert into settle_dlq_events (consumer, consumer_version, status, reason, error, attempts, "
        "history, failed_at, "
        "blocks_key, topic, message_key, log, position, message_id, source, event_type, subject, "
        "content_type, event_time, "
        "extensions, payload) values ($1, '', $2, 'exhausted', '', 5, '[]', 0, 0, 'orders', 'c', 'orders/0', "
        "1, $3, '', "
        "'order.placed', '', '', 0, '', x'')",
        {consumer, status, message});
    tx.commit();
  }

  static void expect_unclear(const verify_report& report) {
    EXPECT_TRUE(report.clean());
    ASSERT_FALSE(report.not_judged.empty());
    EXPECT_NE(report.not_judged[0].find("1 effects that may be on their way"), std::string::npos)
        << report.not_judged[0];
  }

  void apply(const std::string& order, const std::string& customer = "c",
             const std::string& consumer = "warehouse") {
    auto tx = warehouse_->begin();
    note_applied(tx, consumer, about(order, customer));
    tx.commit();
  }

  void relay_to(publisher& destination) {
    relay one(*orders_, destination);
    while (one.run_once()) {
    }
    one.leave();
  }
  void relay_all() { relay_to(broker_->publishing()); }

  void subscribe(const std::string& group = "warehouse") { broker_->subscribe({group, {"orders"}}); }

  void acknowledge_all(const std::string& group = "warehouse") {
    auto member = broker_->subscribe({group, {"orders"}});
    std::vector<delivery_tag> tags;
    for (const auto& one : member->fetch(1000).deliveries) tags.push_back(one.tag);
    member->acknowledge(tags);
    member->leave();
  }

  verify_report judge() {
    return verify({.services = {orders_.get(), warehouse_.get()}, .broker = broker_->inspection()});
  }
  verify_report judge_without_broker() {
    verify_input input;
    input.services = {orders_.get(), warehouse_.get()};
    return verify(input);
  }

  // The only finding of a report, which has to be of this kind.
  static verify_finding expect_only(const verify_report& report, const std::string& kind,
                                    const std::string& detail) {
    EXPECT_EQ(report.lost + report.doubled + report.ghosts + report.reordered, 1);
    EXPECT_FALSE(report.clean());
    EXPECT_EQ(report.findings.size(), 1u);
    if (report.findings.empty()) return {};
    EXPECT_EQ(report.findings[0].kind, kind);
    EXPECT_NE(report.findings[0].detail.find(detail), std::string::npos) << report.findings[0].detail;
    return report.findings[0];
  }

  testing::manual_time time_;
  test::quiet_log log_;
  environment env_;
  test::temp_dir dir_;
  std::unique_ptr<database> orders_, warehouse_;
  std::unique_ptr<broker> broker_;
};

// Proves V2
TEST_F(checker, everything_committed_published_and_applied_once_is_clean) {
  for (const auto* order : {"o-1", "o-2", "o-3"}) place(order);
  relay_all();
  for (const auto* order : {"o-1", "o-2", "o-3"}) apply(order);
  acknowledge_all();
  const auto report = judge();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.committed, 3);
  EXPECT_EQ(report.published, 3);
  EXPECT_EQ(report.expected, 3);
  EXPECT_EQ(report.applied, 3);
  EXPECT_EQ(report.pending, 0);
  EXPECT_EQ(report.consumers, (std::vector<std::string>{"warehouse"}));
  EXPECT_TRUE(report.findings.empty());
  EXPECT_TRUE(report.not_judged.empty());
}

// Proves V2
TEST_F(checker, what_waits_in_the_outbox_is_pending) {
  subscribe();
  place("o-1");
  const auto report = judge();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.pending, 1);
  EXPECT_EQ(report.published, 0);
}

// Proves V2
TEST_F(checker, what_waits_at_the_broker_is_pending) {
  subscribe();
  place("o-1");
  relay_all();
  const auto report = judge();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.pending, 1);
  EXPECT_EQ(report.published, 1);
}

TEST_F(checker, what_is_applied_but_not_acknowledged_yet_is_applied) {
  subscribe();
  place("o-1");
  relay_all();
  apply("o-1");
  const auto report = judge();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.pending, 0);
  EXPECT_EQ(report.applied, 1);
}

// Proves V2
TEST_F(checker, a_message_acknowledged_without_its_effect_is_lost) {
  place("o-1");
  relay_all();
  acknowledge_all();
  const auto report = judge();
  const auto finding =
      expect_only(report, "lost", "the message was acknowledged, but its effect is not there");
  EXPECT_EQ(finding.consumer, "warehouse");
  EXPECT_EQ(finding.subject, "o-1");
  EXPECT_EQ(report.lost, 1);
}

// Proves V2
TEST_F(checker, an_event_that_was_never_written_is_lost) {
  subscribe();
  auto cause = about("o-1");
  cause.event = system_ids().next_as<event_id>();
  auto tx = orders_->begin();
  note_committed(tx, cause);
  tx.commit();
  expect_only(judge(), "lost", "neither in the outbox nor at the broker");
}

// Proves V2
TEST_F(checker, a_cause_without_an_event_is_lost) {
  subscribe();
  auto tx = orders_->begin();
  note_committed(tx, about("o-1"));
  tx.commit();
  expect_only(judge(), "lost", "committed without an event");
}

// Proves V2
TEST_F(checker, an_event_that_the_broker_confirmed_and_does_not_have_is_lost) {
  subscribe();
  place("o-1");
  lying_publisher liar;
  relay_to(liar);
  expect_only(judge(), "lost", "the outbox says published, but the broker does not have it");
}

// Proves V2
TEST_F(checker, an_effect_applied_twice_is_doubled_and_counted_once) {
  place("o-1");
  relay_all();
  acknowledge_all();
  for (int i = 0; i < 3; ++i) apply("o-1");
  const auto report = judge();
  expect_only(report, "doubled", "applied 3 times");
  EXPECT_EQ(report.doubled, 1);
  EXPECT_EQ(report.applied, 1);
}

// Proves V2
TEST_F(checker, an_effect_without_a_cause_is_a_ghost) {
  apply("o-404");
  const auto report = judge();
  expect_only(report, "ghost", "never committed");
  EXPECT_EQ(report.ghosts, 1);
}

// Proves V2, O1
TEST_F(checker, a_cause_that_rolled_back_does_not_count) {
  {
    auto tx = orders_->begin();
    note_committed(tx, about("o-1"));
  }
  EXPECT_EQ(judge().committed, 0);
}

// Proves V2, O4
TEST_F(checker, effects_of_one_key_out_of_order_are_reordered) {
  for (const auto* order : {"o-1", "o-2", "o-3"}) place(order);
  relay_all();
  acknowledge_all();
  for (const auto* order : {"o-1", "o-3", "o-2"}) apply(order);
  const auto report = judge();
  const auto finding = expect_only(report, "reordered", "applied after o-3, a later one of key c");
  EXPECT_EQ(finding.subject, "o-2");
}

TEST_F(checker, effects_of_different_keys_or_of_none_have_no_order) {
  place("a-1", "a");
  place("b-1", "b");
  place("n-1", "");
  place("n-2", "");
  relay_all();
  acknowledge_all();
  apply("n-2", "");
  apply("n-1", "");
  apply("b-1", "b");
  apply("a-1", "a");
  EXPECT_TRUE(judge().clean());
}

TEST_F(checker, a_duplicate_that_comes_late_is_doubled_and_not_also_reordered) {
  place("o-1");
  place("o-2");
  relay_all();
  acknowledge_all();
  for (const auto* order : {"o-1", "o-2", "o-1"}) apply(order);
  const auto report = judge();
  EXPECT_EQ(report.doubled, 1);
  EXPECT_EQ(report.reordered, 0);
}

TEST_F(checker, causes_in_different_databases_have_no_order_between_them) {
  auto second_shop = open("second_shop.db");
  const auto note = [](database& db, const std::string& order) {
    auto tx = db.begin();
    auto cause = about(order);
    cause.event = system_ids().next_as<event_id>();
    note_committed(tx, cause);
    tx.commit();
  };
  note(*orders_, "a-1");
  note(*orders_, "a-2");
  note(*second_shop, "b-1");
  for (const auto* order : {"a-1", "a-2", "b-1"}) apply(order);
  const auto report = verify(
      {.services = {orders_.get(), second_shop.get(), warehouse_.get()}, .broker = broker_->inspection()});
  EXPECT_EQ(report.reordered, 0);
}

TEST_F(checker, every_consumer_of_a_topic_is_judged) {
  place("o-1");
  relay_all();
  acknowledge_all("warehouse");
  apply("o-1", "c", "warehouse");
  subscribe("mail");
  const auto report = judge();
  EXPECT_EQ(report.expected, 2);
  EXPECT_EQ(report.applied, 1);
  EXPECT_EQ(report.pending, 1);
  EXPECT_EQ(report.consumers, (std::vector<std::string>{"mail", "warehouse"}));
}

TEST_F(checker, one_consumers_acknowledgement_does_not_cover_anothers_loss) {
  place("o-1");
  relay_all();
  acknowledge_all("warehouse");
  acknowledge_all("mail");
  apply("o-1", "c", "warehouse");
  const auto report = judge();
  const auto finding = expect_only(report, "lost", "acknowledged");
  EXPECT_EQ(finding.consumer, "mail");
}

TEST_F(checker, names_of_topics_and_groups_with_slashes_are_not_mixed_up) {
  auto member = broker_->subscribe({"a/b", {"orders"}});
  auto other = broker_->subscribe({"a", {"b/orders"}});
  place("o-1");
  relay_all();
  std::vector<delivery_tag> tags;
  for (const auto& one : member->fetch(10).deliveries) tags.push_back(one.tag);
  ASSERT_EQ(tags.size(), 1u);
  EXPECT_EQ(judge().pending, 1);
  member->acknowledge(tags);
  EXPECT_EQ(judge().lost, 1);
}

TEST_F(checker, a_topic_that_nobody_listens_to_still_has_to_reach_the_broker) {
  place("o-1");
  EXPECT_TRUE(judge().clean()) << "it is on its way";
  lying_publisher liar;
  relay_to(liar);
  expect_only(judge(), "lost", "the broker does not have it");
}

TEST_F(checker, a_topic_that_nobody_listens_to_is_clean_once_it_is_at_the_broker) {
  place("o-1");
  relay_all();
  const auto report = judge();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.published, 1);
  EXPECT_EQ(report.expected, 0);
}

TEST_F(checker, copies_at_the_broker_count_as_one_published_event) {
  const auto id = place("o-1");
  relay_all();
  message copy;
  copy.id = id.text();
  copy.topic = "orders";
  copy.key = "c";
  broker_->publishing().publish(std::vector<message>{copy});
  apply("o-1");
  acknowledge_all();
  const auto report = judge();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.published, 1);
}

TEST_F(checker, without_the_brokers_file_it_says_what_it_cannot_judge) {
  place("o-1");
  relay_all();
  apply("o-1");
  const auto report = judge_without_broker();
  EXPECT_TRUE(report.clean());
  ASSERT_EQ(report.not_judged.size(), 1u);
  EXPECT_NE(report.not_judged[0].find("broker"), std::string::npos);
}

TEST_F(checker, without_the_brokers_file_an_event_that_was_never_written_is_still_found) {
  place("o-1");
  apply("o-1");
  auto cause = about("o-2");
  cause.event = system_ids().next_as<event_id>();
  auto tx = orders_->begin();
  note_committed(tx, cause);
  tx.commit();
  expect_only(judge_without_broker(), "lost", "the event is not in the outbox");
}

// Topics and groups, and no messages: a broker that gives each message away.
class closed_inspection final : public broker_inspection {
 public:
  explicit closed_inspection(broker_inspection& of) : of_(of) {}
  std::string name() const override { return of_.name(); }
  std::optional<std::int64_t> stored_bytes() override { return std::nullopt; }
  std::vector<inspected_topic> topics(std::size_t topics_max) override { return of_.topics(topics_max); }
  std::vector<inspected_group> groups(const inspect_groups& wanted) override { return of_.groups(wanted); }

 private:
  broker_inspection& of_;
};

// Proves V2
TEST_F(checker, a_broker_that_cannot_be_read_from_a_place_is_not_accused_of_losing_messages) {
  subscribe();
  place("o-1");
  relay_all();
  closed_inspection closed(*broker_->inspection());
  const auto report = verify({.services = {orders_.get(), warehouse_.get()}, .broker = &closed});
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.pending, 1);
  ASSERT_EQ(report.not_judged.size(), 1u);
  EXPECT_NE(report.not_judged[0].find("cannot be read from a place"), std::string::npos);
}

// Proves V2
TEST_F(checker, by_its_records_it_does_not_accuse_a_broker_that_cannot_be_read_from_a_place) {
  subscribe();
  auto tx = orders_->begin();
  publish(tx, event{.topic = "orders", .type = "order.placed", .key = "c"});
  tx.commit();
  relay_all();
  closed_inspection closed(*broker_->inspection());
  const auto report = verify({.services = {orders_.get(), warehouse_.get()}, .broker = &closed});
  EXPECT_TRUE(report.from_records);
  EXPECT_TRUE(report.clean());
  EXPECT_NE(report.not_judged.back().find("cannot be read from a place"), std::string::npos);
}

TEST_F(checker, without_an_effect_log_it_does_not_claim_to_have_checked) {
  const auto report = judge();
  EXPECT_TRUE(report.from_records);
  ASSERT_EQ(report.not_judged.size(), 1u);
  EXPECT_NE(report.not_judged[0].find("effect log"), std::string::npos);
}

TEST_F(checker, a_replay_of_a_dead_letter_is_not_lost_by_those_it_is_not_for) {
  auto tx = orders_->begin();
  const auto id = publish(tx, event{.topic = "orders", .type = "order.placed", .key = "c"});
  message replay;
  replay.id = system_ids().next_as<event_id>().text();
  replay.type = "order.placed";
  replay.topic = "orders";
  dead_letter given_up;
  given_up.consumer = "warehouse";
  given_up.what = replay;
  const auto letter = write_dead_letter(tx, given_up);
  tx.execute("delete from settle_outbox where topic = 'orders.dlq'");  // its announcement is another event
  replay.extensions = {{"settlereplayfor", "warehouse"}, {"settlereplayof", std::to_string(letter) + ".1"}};
  republish(tx, replay);
  tx.commit();
  relay_all();
  acknowledge_all("mail");
  auto note = warehouse_->begin();
  note.execute(
      "insert into settle_processed_events (consumer, message_id, topic, event_type, processed_at) "
      "values ('mail', $1, 'orders', 'order.placed', 0)",
      {id});
  note.commit();
  const auto report = judge();
  EXPECT_EQ(report.lost, 0);
  EXPECT_EQ(report.committed, 1);
  EXPECT_EQ(report.applied, 1);
}

// Proves V2
TEST_F(checker, a_late_effect_without_an_event_that_may_be_a_replay_is_not_judged) {
  subscribe();
  for (const auto* order : {"o-1", "o-2", "o-3"}) place_without_id(order);
  relay_all();
  acknowledge_all();
  give_up("warehouse", "some event", "REPLAYED");
  for (const auto* order : {"o-2", "o-3", "o-1"}) apply(order);
  const auto report = judge();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.reordered, 0);
  ASSERT_EQ(report.not_judged.size(), 1u);
  EXPECT_NE(report.not_judged[0].find("may be replays of dead letters"), std::string::npos)
      << report.not_judged[0];
}

// Proves V2, O4
TEST_F(checker, a_late_effect_without_an_event_is_reordered_where_nothing_was_given_up) {
  subscribe();
  for (const auto* order : {"o-1", "o-2"}) place_without_id(order);
  relay_all();
  acknowledge_all();
  give_up("mail", "some event", "REPLAYED");
  for (const auto* order : {"o-2", "o-1"}) apply(order);
  expect_only(judge(), "reordered", "applied after o-2, a later one of key c");
}

// Proves V2
TEST_F(checker, an_event_that_only_the_applied_effect_names_is_known_to_be_a_replay) {
  subscribe();
  const auto first = place_without_id("o-1");
  place_without_id("o-2");
  relay_all();
  acknowledge_all();
  give_up("warehouse", first.text(), "REPLAYED");
  apply("o-2");
  auto late = about("o-1");
  late.event = first;
  auto tx = warehouse_->begin();
  note_applied(tx, "warehouse", late);
  tx.commit();
  const auto report = judge();
  EXPECT_TRUE(report.clean());
  EXPECT_TRUE(report.not_judged.empty());
}

// Proves V2
TEST_F(checker, a_cause_without_an_event_is_not_judged_while_its_event_may_be_on_its_way) {
  subscribe();
  const auto id = place_without_id("o-1");
  expect_unclear(judge());  // in the outbox
  relay_all();
  expect_unclear(judge());  // at the broker
  acknowledge_all();
  give_up("warehouse", id.text(), "NEW");
  expect_unclear(judge());  // a dead letter
}

// Proves V2
TEST_F(checker, a_cause_without_an_event_is_lost_if_all_that_is_under_way_belongs_to_others) {
  subscribe();
  place("o-1");
  auto tx = orders_->begin();
  note_committed(tx, about("o-2"));
  tx.commit();
  expect_only(judge(), "lost", "committed without an event");
}

// Proves V2
TEST_F(checker, a_cause_without_an_event_of_a_topic_that_nobody_listens_to_may_be_at_the_broker) {
  place_without_id("o-1");
  expect_unclear(judge());
  relay_all();
  expect_unclear(judge());
  expect_unclear(judge_without_broker());
}

TEST_F(checker, names_a_few_examples_and_counts_them_all) {
  for (int i = 0; i < 20; ++i) apply("ghost-" + std::to_string(i));
  verify_input input;
  input.services = {warehouse_.get()};
  input.broker = broker_->inspection();
  input.examples_max = 3;
  const auto report = verify(input);
  EXPECT_EQ(report.ghosts, 20);
  EXPECT_EQ(report.findings.size(), 3u);
}

}  // namespace
}  // namespace settle
