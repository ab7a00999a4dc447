// Sagas that wait for events, on both databases: early, late, twice, never.
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/saga.hpp"
#include "settle/sqlite.hpp"
#include "support/list_broker.hpp"
#include "support/saga_world.hpp"

namespace settle::test {

struct pickup {
  std::string trip, by;
};

}  // namespace settle::test

template <>
struct settle::codec<settle::test::pickup> {
  static constexpr std::string_view topic = "pickups";
  static constexpr std::string_view type = "pickup.confirmed";
  static std::string key(const test::pickup& p) { return p.trip; }
  static std::string encode(const test::pickup& p) { return p.trip + "|" + p.by; }
  static test::pickup decode(std::string_view bytes) {
    const auto bar = bytes.find('|');
    if (bar == std::string_view::npos) throw std::runtime_error("no pickup");
    return {std::string(bytes.substr(0, bar)), std::string(bytes.substr(bar + 1))};
  }
};

namespace settle::test {
namespace {

const auto label = booking("label");
const auto refund = booking("refund");
const auto escalate = booking("escalate");

// The seeds' return processing, in miniature.
flow<std::string> process_return(saga& s, const trip& t) {
  co_await s.run(label, t);
  const auto picked_up = co_await s.wait_for<pickup>(t.id, 120h);
  if (!picked_up) {
    co_await s.run(escalate, t);
    co_await s.undo("not picked up within 5 days");
  }
  co_await s.run(refund, t);
  co_return picked_up->by;
}
const saga_type return_saga("return_processing", 1, process_return, {label, refund, escalate});

flow<> wait_in_branch(saga s, const trip& t) {
  const auto picked_up = co_await s.wait_for<pickup>(t.id);
  if (picked_up) co_await s.run(refund, t);
}
flow<> label_in_branch(saga s, const trip& t) { co_await s.run(label, t); }
flow<> wait_beside(saga& s, const trip& t) {
  auto one = wait_in_branch(s.branch(0), t);
  auto two = label_in_branch(s.branch(1), t);
  co_await s.all(one, two);
}
const saga_type beside("beside", 1, wait_beside, {label, refund});

struct sagas_that_wait : saga_tests {
  void SetUp() override {
    saga_tests::SetUp();
    if (IsSkipped()) return;
    restart();
  }
  void restart() {
    host.reset();
    host.emplace(*db, broker, options());
    host->add(return_saga).add(beside);
    host->on<pickup>([](const pickup& p) { return p.trip; });
  }
  saga_id start(const std::string& id) {
    const auto made = host->start(return_saga, id, trip{id});
    drain(*host);
    return made;
  }
  // Into the broker; nobody has read it yet.
  void publish(const std::string& event_id, const std::string& id, const std::string& payload = "") {
    message m;
    m.id = event_id;
    m.topic = "pickups";
    m.type = "pickup.confirmed";
    m.key = id;
    m.payload = payload.empty() ? id + "|" + event_id : payload;
    broker.messages.push_back(m);
  }
  void pass(duration time_passes, duration at_once) {
    for (duration passed{}; passed < time_passes; passed += at_once) {
      time.advance(at_once);
      drain(*host);
    }
  }
  std::int64_t waits() { return number("select count(*) from " + table("saga_waits")); }
  std::int64_t unclaimed() {
    return number("select count(*) from " + table("saga_mailbox") + " where no is null");
  }

  list_broker broker;
  std::optional<saga_host> host;
};

// Proves S3
TEST_P(sagas_that_wait, go_on_when_their_event_comes) {
  const auto id = start("r1"), other = start("r2");
  EXPECT_EQ(waits(), 2);
  publish("e1", "r1");
  drain(*host);
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(status(other), "RUNNING");
  EXPECT_EQ(effects("r1"), (texts{"label", "refund"}));
  EXPECT_EQ(broker.acknowledged.size(), 1U);
  EXPECT_EQ(waits(), 1);
  EXPECT_NE(cell("context", id).find("pickup.confirmed"), std::string::npos);
}

// Proves S3
TEST_P(sagas_that_wait, get_an_event_that_came_before_they_began_to_wait) {
  publish("e1", "r1");
  drain(*host);
  EXPECT_EQ(unclaimed(), 1);
  const auto id = start("r1");
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(unclaimed(), 0);
  EXPECT_EQ(waits(), 0);
}

// Proves S3
TEST_P(sagas_that_wait, are_timed_out_once_and_keep_what_comes_later_for_others) {
  const auto id = start("r1");
  pass(119h, 7h);
  EXPECT_EQ(status(id), "RUNNING");
  restart();
  pass(8h, 1h);
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("r1"), (texts{"label", "escalate", "undo escalate of r1", "undo label of r1"}));
  EXPECT_EQ(waits(), 0);
  publish("late", "r1");
  drain(*host);
  EXPECT_EQ(unclaimed(), 1);
  EXPECT_EQ(status(id), "COMPENSATED");
}

// Proves S3
TEST_P(sagas_that_wait, are_not_timed_out_while_what_was_published_in_time_is_unread) {
  const auto id = start("r1");
  host.reset();
  publish("e1", "r1");
  time.advance(6 * 24h);  // nobody was there
  restart();
  drain(*host);
  EXPECT_EQ(status(id), "COMPLETED");
}

// Proves S3
TEST_P(sagas_that_wait, wait_on_while_the_broker_is_away) {
  const auto id = start("r1");
  broker.away = true;
  pass(6 * 24h, 12h);
  EXPECT_EQ(status(id), "RUNNING");
  const auto ticks = host->counts().ticks;
  drain(*host);
  drain(*host);
  EXPECT_LE(host->counts().ticks - ticks, 2) << "it does not spin";
  broker.away = false;
  pass(1min, 10s);
  EXPECT_EQ(status(id), "COMPENSATED");
}

// Proves S3
TEST_P(sagas_that_wait, take_an_event_that_is_delivered_twice_once) {
  const auto first = start("r1");
  publish("e1", "r1");
  publish("e1", "r1");
  drain(*host);
  EXPECT_EQ(status(first), "COMPLETED");
  EXPECT_EQ(unclaimed(), 0);
  auto tx = db->begin();
  EXPECT_TRUE(host->deliver(tx, "e2", pickup{"r2", "x"}));
  EXPECT_FALSE(host->deliver(tx, "e2", pickup{"r2", "x"}));
  tx.commit();
  EXPECT_EQ(unclaimed(), 1);
}

// Proves S3
TEST_P(sagas_that_wait, of_one_key_get_one_event_each_the_oldest_first) {
  const auto first = host->start(return_saga, "a", trip{"same"}),
             second = host->start(return_saga, "b", trip{"same"});
  drain(*host);
  publish("e1", "same");
  drain(*host);
  EXPECT_EQ(status(first), "COMPLETED");
  EXPECT_EQ(status(second), "RUNNING");
  publish("e2", "same");
  drain(*host);
  EXPECT_EQ(status(second), "COMPLETED");
}

// Proves S3
TEST_P(sagas_that_wait, and_are_undone_leave_their_event_to_others) {
  const auto id = host->start(beside, "r1", trip{"r1", "label:refuse"});
  drain(*host);
  EXPECT_EQ(status(id), "FAILED");
  EXPECT_EQ(waits(), 0);
  publish("e1", "r1");
  drain(*host);
  EXPECT_EQ(unclaimed(), 1);
  EXPECT_EQ(status(start("r1")), "COMPLETED");
}

// Proves S3
TEST_P(sagas_that_wait, leave_what_nobody_waits_for_to_the_sweeper) {
  publish("e1", "nobody");
  drain(*host);
  pass(31 * 24h, 24h);
  EXPECT_EQ(number("select count(*) from " + table("saga_mailbox")), 0);
  EXPECT_EQ(counters.value("settle_saga_events_unclaimed_total", {{"host", "trips"}}), 1);
}

INSTANTIATE_TEST_SUITE_P(databases, sagas_that_wait, both_databases, database_name);

}  // namespace
}  // namespace settle::test
