// Webhooks with a failure and a kill at every fault point, on both databases. The provider sends everything
// again afterwards, as providers do when they got no 200.
#include <algorithm>
#include <functional>
#include <thread>

#include "support/webhook_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using webhook::outcome;

struct webhook_crashes : test::webhook_world {
  // Two payments, of which one is captured before it is authorized.
  static std::vector<std::string> bodies() {
    return {payment("captured-7", "captured", "7"), payment("authorized-7", "authorized", "7"),
            payment("authorized-8", "authorized", "8")};
  }

  static webhook::answer apply_and_publish(const webhook::received& event, transaction& tx) {
    publish(tx, {.topic = "payments", .type = event.type, .key = event.key},
            {.id = webhook::forwarded_id(event.source, event.id)});
    return in_order(event, tx);
  }

  void forget() {
    if (on_postgres()) own->forget_events();
    auto tx = db->begin();
    if (!on_postgres())
      for (const auto* name : {"webhook_events", "webhook_keys", "webhook_horizons", "outbox"})
        tx.execute("delete from " + table(name));
    tx.execute("delete from effect_log");
    tx.commit();
  }

  static void work(database& in) {
    webhook::worker one(in, {.park_wait = 1min});
    one.on("payments", "", apply_and_publish);
    drain(one);
  }

  // The server may hold the rows of a session that was killed for a moment.
  void work_until_done() {
    testing::manual_time later(time.now() + 1h);
    const auto fresh = open(nullptr, &later);
    send_all(*fresh);
    for (int i = 0; i < 1000; ++i) {
      work(*fresh);
      if (number("select count(*) from " + table("webhook_events") + " where finished_at is null") == 0)
        return;
      std::this_thread::sleep_for(5ms);
    }
  }

  std::function<webhook::decision(database&, const std::string&)> send;
  void send_all(database& in) const {
    for (const auto& body : bodies()) send(in, body);
  }

  testing::exploration explore() {
    return testing::explore({
        .prepare = [&] { forget(); },
        .run =
            [&](fault_points& faults) {
              const auto faulty = open(&faults);
              send_all(*faulty);
              work(*faulty);
            },
        .recover = [&] { work_until_done(); },
        .check =
            [&](const std::string& where) {
              EXPECT_EQ(effects(), 3) << where;
              for (const auto* id : {"captured-7", "authorized-7", "authorized-8"}) {
                EXPECT_EQ(effects_of(id), 1) << id << " " << where;
                EXPECT_EQ(status(id), "APPLIED") << id << " " << where;
              }
              EXPECT_EQ(published(), 3) << where;
            },
    });
  }
};

// Proves A3
TEST_P(webhook_crashes, journaled_events_have_one_effect_at_every_fault_point) {
  send = [&](database& in, const std::string& body) { return deliver(inbox, in, body); };
  const auto explored = explore();
  for (const auto* point :
       {"webhook.receive.before", "webhook.receive.after", "webhook.handler.before", "webhook.handler.after",
        "webhook.work.before", "webhook.work.after", "webhook.start.before", "webhook.start.after"})
    EXPECT_GE(std::ranges::count(explored.points, point), 3) << point;
}

// Proves A3
TEST_P(webhook_crashes, events_applied_in_the_services_transaction_have_one_effect_at_every_fault_point) {
  send = [&](database& in, const std::string& body) { return apply(inbox, in, body, apply_and_publish); };
  const auto explored = explore();
  for (const auto* point : {"webhook.insert.before", "webhook.insert.after", "webhook.handler.before",
                            "webhook.handler.after", "webhook.apply.before", "webhook.apply.after"})
    EXPECT_GE(std::ranges::count(explored.points, point), 3) << point;
}

// Fails once, is applied, expires, and comes again when nobody remembers it but the horizon. Proves A3
TEST_P(webhook_crashes, a_failed_and_later_forgotten_event_has_one_effect_at_every_fault_point) {
  const auto at = std::chrono::floor<std::chrono::seconds>(time.now()).time_since_epoch().count();
  const auto body = payment("flaky", "t", "7", at);
  const auto second_time = [](const webhook::received& event, transaction& tx) {
    if (event.attempts == 0) throw std::runtime_error("not the first time");
    return log_effect(event, tx);
  };
  const auto live = [&](database& in, testing::manual_time& clock) {
    webhook::worker one(in);
    one.on("payments", "", second_time);
    deliver(inbox, in, body);
    for (const auto passes : {duration(0s), duration(10s), duration(10s), duration(40 * 24h)}) {
      clock.advance(passes);
      drain(one);
    }
  };
  const auto explored = testing::explore({
      .prepare = [&] { forget(); },
      .run =
          [&](fault_points& faults) {
            testing::manual_time clock(time.now());
            const auto faulty = open(&faults, &clock);
            live(*faulty, clock);
          },
      .recover =
          [&] {
            for (const auto later : {41 * 24h, 90 * 24h}) {
              testing::manual_time clock(time.now() + later);
              const auto fresh = open(nullptr, &clock);
              live(*fresh, clock);
            }
          },
      .check = [&](const std::string& where) { EXPECT_EQ(effects_of("flaky"), 1) << where; },
  });
  for (const auto* point :
       {"webhook.charge.before", "webhook.charge.after", "webhook.horizon.before", "webhook.horizon.after",
        "webhook.expire.before", "webhook.expire.after", "webhook.work.after"})
    EXPECT_GE(std::ranges::count(explored.points, point), 1) << point;
}

INSTANTIATE_TEST_SUITE_P(databases, webhook_crashes, ::testing::Values(dialect::sqlite, dialect::postgres),
                         test::dialect_name);

}  // namespace
}  // namespace settle
