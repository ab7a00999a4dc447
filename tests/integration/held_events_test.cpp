// Events that a broker rejects, that wait behind such a one, or whose time has not come; on both databases.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "settle/driver/broker.hpp"
#include "settle/outbox.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"
#include "settle/verify.hpp"
#include "support/held_events_world.hpp"
#include "support/order_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

struct held_events : test::held_events_world {};

// Proves O3, O4
TEST_P(held_events, later_ones_of_a_rejected_key_wait_behind_it_and_nobody_else_does) {
  relay r(*db, destination);
  reject("bad");
  const auto bad = emit("k", "bad");
  emit("k", "second");
  emit("other", "1");
  run(r);
  emit("k", "third");
  for (int i = 0; i < 40; ++i) emit("key-" + std::to_string(i), "x");
  run(r);
  EXPECT_EQ(destination.seen.size(), 41u) << "only the key of the rejected one waits";
  EXPECT_EQ(std::ranges::count(destination.payloads(), "second"), 0);
  EXPECT_EQ(status_of(bad), "PENDING");
  EXPECT_EQ(held(), 3);
  destination.seen.clear();
  destination.refuse = nullptr;
  run_for(r, 1s);
  EXPECT_EQ(destination.payloads(), (names{"bad", "second", "third"}));
  EXPECT_EQ(destination.seen[0].id, bad.text());
  EXPECT_EQ(status_of(bad), "PUBLISHED");
  EXPECT_EQ(held(), 0);
  emit("k", "fourth");
  run(r);
  EXPECT_EQ(destination.payloads().back(), "fourth") << "the key flows again";
}

// No broker keeps an order across topics, so nobody waits for another topic. Proves O4
TEST_P(held_events, the_same_key_on_another_topic_does_not_wait) {
  const auto emit_on = [&](const std::string& topic, const std::string& payload,
                           const publish_options& options = {}) {
    auto tx = db->begin();
    publish(tx, event{.topic = topic, .type = "e", .key = "k", .payload = payload}, options);
    tx.commit();
  };
  relay r(*db, destination);
  reject("bad");
  emit_on("t", "bad");
  emit_on("u", "in the same batch");
  emit_on("t", "second");
  emit_on("u", "delayed", {.deliver_at = time.now() + 50ms});
  run(r);
  EXPECT_EQ(destination.payloads(), (names{"in the same batch"}));
  emit_on("u", "in a later batch");
  emit_on("t", "third");
  run(r);
  EXPECT_EQ(destination.payloads(), (names{"in the same batch", "in a later batch"}));
  time.advance(50ms);
  run(r);
  EXPECT_EQ(destination.payloads().back(), "delayed");
  r.leave();
  relay next(*db, destination);  // knows it from the table
  emit_on("u", "after a change of owner");
  run(next);
  EXPECT_EQ(destination.payloads().back(), "after a change of owner");
  EXPECT_EQ(held(), 3);
  destination.seen.clear();
  destination.refuse = nullptr;
  run_for(next, 1s);
  EXPECT_EQ(destination.payloads(), (names{"bad", "second", "third"}));
}

// Proves O3, O4
TEST_P(held_events, one_key_held_on_two_topics_goes_on_with_each_by_itself) {
  const auto emit_on = [&](const std::string& topic, const std::string& payload) {
    auto tx = db->begin();
    publish(tx, event{.topic = topic, .type = "e", .key = "k", .payload = payload});
    tx.commit();
  };
  relay r(*db, destination);
  destination.refuse = [](const message& m) {
    return publish_result{m.payload == "bad" ? publish_status::message_rejected : publish_status::confirmed,
                          "too strange"};
  };
  for (const auto* topic : {"t", "u"}) {
    emit_on(topic, "bad");
    emit_on(topic, std::string("behind on ") + topic);
  }
  run(r);
  EXPECT_TRUE(destination.seen.empty());
  EXPECT_EQ(held(), 4);
  destination.refuse = [](const message& m) {
    const bool bad = m.payload == "bad" && m.topic == "t";
    return publish_result{bad ? publish_status::message_rejected : publish_status::confirmed, "too strange"};
  };
  run_for(r, 500ms);
  EXPECT_EQ(destination.payloads(), (names{"bad", "behind on u"}));
  run_for(r, 10s);
  EXPECT_EQ(destination.payloads(), (names{"bad", "behind on u", "behind on t"})) << "t has FAILED";
}

// Proves O2, O3
TEST_P(held_events, after_five_attempts_an_event_has_failed_and_somebody_is_told) {
  relay r(*db, destination);
  int attempts = 0;
  destination.refuse = [&](const message& m) {
    if (m.payload == "bad") ++attempts;
    return publish_result{m.payload == "bad" ? publish_status::message_rejected : publish_status::confirmed,
                          "too strange"};
  };
  const auto bad = emit("k", "bad");
  emit("k", "second");
  run_for(r, 10s, 500ms);
  EXPECT_EQ(attempts, 5);
  EXPECT_EQ(status_of(bad), "FAILED");
  EXPECT_EQ(destination.payloads(), names{"second"}) << "the rest of its key goes on";
  EXPECT_EQ(log.count("outbox_event_failed"), 1u);
  EXPECT_EQ(counters.value("settle_outbox_failed_total", {{"topic", "t"}}), 1);
  const auto failed = failed_events(*db);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].id, bad);
  EXPECT_EQ(failed[0].key, "k");
  EXPECT_EQ(failed[0].attempts, 5);
  EXPECT_EQ(failed[0].last_error, "too strange");
  run_for(r, 1min, 5s);
  EXPECT_EQ(attempts, 5) << "nobody tries again by himself";
}

// With an effect log and without one. Proves V2
TEST_P(held_events, that_have_failed_are_named_by_the_checker) {
  auto broker = sqlite::open_broker(dir.file("broker.db"));
  broker->subscribe({"warehouse", {"t"}});
  relay r(*db, destination);
  reject("bad");
  const auto bad = emit("k", "bad");
  run_for(r, 10s, 500ms);
  ASSERT_EQ(status_of(bad), "FAILED");
  const auto expect_named = [&](const std::string& subject, broker_inspection* with_broker) {
    const auto report = verify({.services = {db.get()}, .broker = with_broker});
    EXPECT_EQ(report.failed, 1);
    EXPECT_EQ(report.pending + report.lost, 0);
    ASSERT_EQ(report.findings.size(), 1u);
    EXPECT_EQ(report.findings[0].kind, "failed");
    EXPECT_EQ(report.findings[0].subject, subject);
  };
  expect_named(bad.text(), broker->inspection());
  expect_named(bad.text(), nullptr);
  time.advance(13h);  // its row in the outbox goes
  run_for(r, 1min, 4s);
  expect_named(bad.text(), broker->inspection());
  auto tx = db->begin();
  note_committed(tx, {.topic = "t", .key = "k", .subject = "order-1", .event = bad});
  tx.commit();
  expect_named("order-1", broker->inspection());
  expect_named("order-1", nullptr);
}

// Proves O3
TEST_P(held_events, an_operator_requeues_what_has_failed) {
  relay r(*db, destination);
  reject("bad");
  const auto bad = emit("k", "bad");
  const auto keyless = emit("", "bad");
  run_for(r, 10s, 500ms);
  ASSERT_EQ(failed_events(*db).size(), 2u);
  EXPECT_EQ(requeue_failed(*db, db->env().ids->next_as<event_id>()), 0);
  EXPECT_EQ(requeue_failed(*db, bad), 1);
  destination.refuse = nullptr;
  run_for(r, 5s);
  ASSERT_EQ(destination.seen.size(), 1u);
  EXPECT_EQ(destination.seen[0].id, bad.text()) << "its id stays";
  EXPECT_EQ(status_of(bad), "PUBLISHED");
  EXPECT_EQ(status_of(keyless), "FAILED");
  EXPECT_EQ(requeue_failed(*db), 1);
  run_for(r, 5s);
  EXPECT_EQ(status_of(keyless), "PUBLISHED");
}

// Proves O4
TEST_P(held_events, a_key_may_be_held_for_good_behind_what_has_failed) {
  relay r(*db, destination, {.on_exhausted = exhausted::hold_key});
  reject("bad");
  emit("k", "bad");
  emit("k", "second");
  run_for(r, 10s, 500ms);
  emit("k", "third");
  run_for(r, 1min, 5s);
  EXPECT_TRUE(destination.seen.empty());
  destination.refuse = nullptr;
  EXPECT_EQ(requeue_failed(*db), 1);
  run_for(r, 10s, 500ms);
  EXPECT_EQ(destination.payloads(), (names{"bad", "second", "third"}));
}

// Proves O4
TEST_P(held_events, one_attempt_is_enough_if_the_options_say_so) {
  relay r(*db, destination, {.attempts_max = 1});
  reject("bad");
  const auto bad = emit("k", "bad");
  emit("k", "second");
  run_for(r, 1s);
  EXPECT_EQ(status_of(bad), "FAILED");
  EXPECT_EQ(destination.payloads(), names{"second"});
}

// Proves O3
TEST_P(held_events, an_outage_of_the_broker_costs_them_no_attempt) {
  relay r(*db, destination);
  reject("bad");
  const auto bad = emit("k", "bad");
  run(r);
  destination.refuse = [](const message&) {
    return publish_result{publish_status::destination_failed, "down"};
  };
  run_for(r, 1h, 1min);
  EXPECT_EQ(status_of(bad), "PENDING");
  EXPECT_EQ(db->read().execute("select attempts from " + table("outbox_held"))[0][0].integer(), 1);
  destination.refuse = nullptr;
  run_for(r, 1min, 5s);
  EXPECT_EQ(status_of(bad), "PUBLISHED");
}

// What was to be tried again in a moment is, and what has its own time keeps it. Proves O3, O13
TEST_P(held_events, a_clock_that_is_set_back_does_not_put_off_what_was_rejected) {
  relay r(*db, destination);
  destination.refuse = [](const message&) { return publish_result{publish_status::message_rejected, "no"}; };
  emit("k", "1");
  emit("", "2");
  emit("later", "3", {.deliver_at = time.now() + 1h});
  run(r);
  destination.refuse = nullptr;
  time.advance(-2h);
  run_for(r, 1s);
  EXPECT_EQ(std::ranges::count(destination.payloads(), "1"), 1);
  EXPECT_EQ(std::ranges::count(destination.payloads(), "2"), 1);
  EXPECT_EQ(destination.seen.size(), 2u);
}

// The same if nobody was there when it happened. Proves O3
TEST_P(held_events, a_clock_that_was_set_back_before_a_relay_starts_does_not_put_them_off) {
  {
    relay dead(*db, destination);
    reject("1");
    emit("k", "1");
    run(dead);
    dead.leave();
  }
  destination.refuse = nullptr;
  time.advance(-2h);
  relay r(*db, destination);
  run_for(r, 1s);
  EXPECT_EQ(destination.payloads(), names{"1"});
}

// Proves O13
TEST_P(held_events, an_event_is_sent_when_its_time_has_come) {
  relay r(*db, destination);
  const auto later = emit("k", "later", {.deliver_at = time.now() + 1h});
  emit("k", "now");
  emit("", "past", {.deliver_at = time.now() - 1h});
  run(r);
  EXPECT_EQ(destination.payloads(), (names{"now", "past"})) << "nobody waits for it";
  EXPECT_EQ(status_of(later), "PENDING");
  time.advance(59min);
  run(r);
  EXPECT_EQ(destination.seen.size(), 2u);
  time.advance(1min);
  run(r);
  ASSERT_EQ(destination.seen.size(), 3u);
  EXPECT_EQ(destination.seen[2].id, later.text());
  EXPECT_EQ(status_of(later), "PUBLISHED");
  EXPECT_LE(r.idle_wait(), 500ms);
}

// Proves O13
TEST_P(held_events, a_relay_wakes_for_the_next_one_that_is_due) {
  relay r(*db, destination);
  emit("k", "soon", {.deliver_at = time.now() + 30ms});
  run(r);
  EXPECT_LE(r.idle_wait(), 30ms);
  EXPECT_GT(r.idle_wait(), 0ms);
}

// Proves O4, O13
TEST_P(held_events, a_delayed_one_waits_behind_a_rejected_one_of_its_key) {
  relay r(*db, destination);
  reject("bad");
  emit("k", "delayed", {.deliver_at = time.now() + 300ms});
  emit("k", "bad");
  run(r);
  time.advance(300ms);
  run(r);
  EXPECT_TRUE(destination.seen.empty());
  destination.refuse = nullptr;
  run_for(r, 2s);
  EXPECT_EQ(destination.payloads(), (names{"bad", "delayed"}));
}

// Proves O3
TEST_P(held_events, are_taken_over_with_their_share) {
  auto first = std::make_unique<relay>(*db, destination);
  reject("bad");
  emit("k", "bad");
  emit("k", "second");
  emit("", "later", {.deliver_at = time.now() + 10min});
  run(*first);
  first.reset();  // as if it had died: it gives nothing back
  time.advance(20min);
  destination.refuse = nullptr;
  relay heir(*db, destination);
  run_for(heir, 1s);
  auto sent = destination.payloads();
  std::ranges::sort(sent);
  EXPECT_EQ(sent, (names{"bad", "later", "second"}));
}

// A relay sleeps while it sends what was held, another takes over meanwhile. Proves O3
TEST_P(held_events, a_replaced_relay_cannot_conclude_them) {
  relay zombie(*db, destination);
  reject("bad");
  emit("k", "bad");
  run(zombie);
  test::recording_publisher other_destination;
  other_destination.refuse = destination.refuse;
  relay heir(*db, other_destination, {.attempts_max = 2});
  time.advance(100ms);
  destination.before_publish = [&] {
    time.advance(1h);
    run_for(heir, 2s);
  };
  destination.refuse = nullptr;
  run(zombie);
  EXPECT_EQ(log.count("relay_ownership_lost"), 1u);
  EXPECT_EQ(failed_events(*db).size(), 1u) << "what the heir has found counts";
}

// Neighbours in its lane have been delivered and forgotten long before: still it is a first delivery.
// Proves C10, O3
TEST_P(held_events, one_that_is_delivered_after_a_day_is_no_late_copy) {
  std::optional<test::scratch_database> warehouse;
  if (on_postgres()) warehouse.emplace();
  test::temp_dir folder;
  test::order_world world(folder, {.orders = on_postgres() ? own->conninfo() : "",
                                   .warehouse = on_postgres() ? warehouse->conninfo() : ""});
  struct picky final : publisher {
    explicit picky(publisher& to) : inner(to) {}
    std::vector<publish_result> publish(std::span<const message> batch, const call_limits&) override {
      if (!strict) return inner.publish(batch);
      std::vector<publish_result> results;
      for (const auto& m : batch)
        results.push_back(m.payload.find("bad") != std::string::npos
                              ? publish_result{publish_status::message_rejected, "too strange"}
                              : inner.publish(std::span(&m, 1))[0]);
      return results;
    }
    publisher& inner;
    bool strict = true;
  } broker(world.broker().publishing());
  relay r(world.orders(), broker);
  const auto place = [&](const std::string& name) {
    auto tx = world.orders().begin();
    publish(tx, test::order_placed{name, "one customer", 1});
    tx.commit();
  };
  const auto settle_down = [&] {
    for (int i = 0; i < 50; ++i) {
      while (r.run_once() || world.consumer().run_once()) {
      }
      world.time().advance(200ms);
    }
  };
  for (const std::string round : {"first", "second"}) {
    broker.strict = true;
    place("bad " + round);
    settle_down();
    for (int i = 0; i < 5; ++i) place("good " + round + std::to_string(i));
    settle_down();
    ASSERT_EQ(failed_events(world.orders()).size(), 1u);
    world.time().advance(25h);
    while (world.consumer().run_once()) {
    }
    ASSERT_EQ(
        world.warehouse().read().execute("select count(*) from " + table("processed_events"))[0][0].integer(),
        0);
    broker.strict = false;
    ASSERT_EQ(requeue_failed(world.orders()), 1);
    settle_down();
    EXPECT_EQ(world.consumer().counts().beyond_horizon, 0);
    world.time().advance(25h);  // and its own record is forgotten, too: the next one has a place behind it
    while (world.consumer().run_once()) {
    }
  }
  EXPECT_EQ(world.warehouse().read().execute("select count(*) from shipments")[0][0].integer(), 12);
}

// Proves O13
TEST_P(held_events, a_delayed_one_behind_a_key_that_is_held_for_good_keeps_nobody_busy) {
  relay r(*db, destination, {.attempts_max = 1, .on_exhausted = exhausted::hold_key});
  reject("bad");
  emit("k", "bad");
  run(r);
  emit("k", "delayed", {.deliver_at = time.now() + 50ms});
  run(r);
  time.advance(1s);
  r.run_once();
  r.run_once();
  EXPECT_FALSE(r.run_once());
  EXPECT_GT(r.idle_wait(), 0ms);
  EXPECT_TRUE(destination.seen.empty());
}

// A relay takes over from one that has died. What that one may have sent comes first, and held events get
// places behind it. Proves C10
TEST_P(held_events, wait_until_everything_that_may_have_been_sent_is_sent_again) {
  {
    relay first(*db, destination);
    emit("a", "later", {.deliver_at = time.now() + 1min});
    run(first);
    emit("a", "1");
    destination.refuse = [](const message&) {
      return publish_result{publish_status::destination_failed, "lost"};
    };
    run(first);  // and dies
  }
  destination.refuse = nullptr;
  time.advance(1h);
  relay heir(*db, destination);
  run_for(heir, 1s);
  ASSERT_EQ(destination.payloads(), (names{"1", "later"}));
  EXPECT_TRUE(destination.seen[1].extensions.contains("settleplace"));
}

// The answer to the first offer is lost, the second one is rejected: the broker may have it all the same,
// under the place that it was first sent with. Proves C10
TEST_P(held_events, keep_the_place_under_which_they_may_be_stored) {
  relay r(*db, destination);
  emit("k", "x", {.deliver_at = time.now() + 1s});
  run(r);
  names places;
  auto answer = publish_status::destination_failed;
  destination.refuse = [&](const message& m) {
    places.push_back(m.extensions.at("settleplace"));
    return publish_result{answer, "no"};
  };
  time.advance(1s);
  run(r);
  answer = publish_status::message_rejected;
  run_for(r, 10s, 500ms);
  ASSERT_GE(places.size(), 5u);
  EXPECT_EQ(std::ranges::count(places, places.front()), static_cast<std::ptrdiff_t>(places.size()));
}

// The same for a publisher that throws instead of answering. Proves C10
TEST_P(held_events, keep_the_place_of_a_window_that_nobody_answered_for) {
  relay r(*db, destination);
  run(r);
  emit("k", "x");
  destination.before_publish = [] { throw std::runtime_error("the line is cut"); };
  EXPECT_THROW(run(r), std::runtime_error);
  std::set<std::string> places;
  int offers = 0;
  destination.refuse = [&](const message& m) {
    if (++offers > 1) places.insert(m.extensions.at("settleplace"));  // the first one is the window's
    return publish_result{publish_status::message_rejected, "no"};
  };
  run_for(r, 10s, 500ms);
  EXPECT_EQ(offers, 5);
  EXPECT_EQ(places.size(), 1u);
}

// Proves C10
TEST_P(held_events, that_were_certainly_not_stored_get_a_new_place_each_time) {
  relay r(*db, destination);
  emit("k", "x", {.deliver_at = time.now() + 1s});
  run(r);
  std::set<std::string> places;
  destination.refuse = [&](const message& m) {
    places.insert(m.extensions.at("settleplace"));
    return publish_result{publish_status::message_rejected, "no"};
  };
  run_for(r, 10s, 500ms);
  EXPECT_EQ(places.size(), 5u);
}

// Proves O3, O4, V3
TEST_P(held_events, survive_a_failure_and_a_kill_at_every_fault_point) {
  struct refusing final : publisher {  // the second offer of a message is accepted
    std::vector<publish_result> publish(std::span<const message> batch, const call_limits&) override {
      std::vector<publish_result> results;
      bool refused = false;
      for (const auto& m : batch) {
        refused = refused || (m.payload == "1" && offers++ == 0);
        results.push_back(refused ? publish_result{publish_status::message_rejected, "not yet"}
                                  : publish_result{});
        if (!refused) stored.push_back(m.payload);
      }
      return results;
    }
    int offers = 0;
    names stored;
  };
  const auto drain = [&](database& on, refusing& to) {
    relay r(on, to);
    run_for(r, 1s, 500ms);
    r.leave();
  };
  refusing recovered;
  testing::explore({
      .prepare =
          [&] {
            db.reset();
            if (on_postgres())
              own->forget_events();
            else
              dir.clear();
            db = open(nullptr);
            for (const auto* payload : {"1", "2", "3"}) emit("k", payload);
            emit("k", "delayed", {.deliver_at = time.now() + 500ms});
            db.reset();
          },
      .run =
          [&](fault_points& faults) {
            refusing to;
            const auto failing = open(&faults);
            drain(*failing, to);
          },
      .recover =
          [&] {
            time.advance(1h);
            recovered = {};
            recovered.offers = 1;
            db = open(nullptr);
            drain(*db, recovered);
          },
      .check =
          [&](const std::string& where) {
            EXPECT_EQ(held(), 0) << where;
            EXPECT_EQ(db->read()
                          .execute("select count(*) from " + table("outbox_events") +
                                   " where status <> 'PUBLISHED'")[0][0]
                          .integer(),
                      0)
                << where;
            const names in_order{"1", "2", "3"};
            names sent;
            std::ranges::copy_if(recovered.stored, std::back_inserter(sent),
                                 [](const auto& one) { return one != "delayed"; });
            EXPECT_TRUE(std::ranges::is_sorted(sent)) << where;
          },
  });
}

INSTANTIATE_TEST_SUITE_P(databases, held_events, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
