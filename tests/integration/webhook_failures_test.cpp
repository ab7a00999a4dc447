// Journaled webhooks whose handlers fail, are away or end their process; on both databases.
#include <csignal>
#include <map>
#include <thread>

#include "settle/error.hpp"
#include "settle/failure.hpp"
#include "support/child_process.hpp"
#include "support/webhook_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using webhook::answer;
using webhook::received;

struct webhook_failures : test::webhook_world {
  // Of a source that is not "payments".
  void deliver_to(const std::string& source, const std::string& body) {
    const webhook::inbox to(webhook::stripe(source, {std::string(test::webhook_secret)}));
    deliver(to, *db, body);
  }

  // Effects, unless this says that the bank is away.
  webhook::handler unless_away(const bool& away) {
    return [this, &away](const received& event, transaction& tx) {
      ++runs[event.source];
      if (away) throw handler_failed(failure_class::outage, "the bank is away");
      return log_effect(event, tx);
    };
  }

  std::map<std::string, int> runs;  // of handlers, by source
};

// Proves A3: others do not wait for an outage, nobody is charged for it, and it ends by itself
TEST_P(webhook_failures, an_outage_pauses_its_source_and_no_other_and_ends_by_itself) {
  bool away = true, never = false;
  webhook::worker one(*db, {.outage_wait = 1s, .outage_wait_max = 10s});
  one.on("payments", "", unless_away(away)).on("shipping", "", unless_away(never));
  for (int i = 0; i < 5; ++i) deliver(payment("evt_" + std::to_string(i), "t", "k"));
  for (int i = 0; i < 3; ++i) deliver_to("shipping", payment("parcel_" + std::to_string(i), "t", "k"));
  drain(one);
  EXPECT_EQ(runs["payments"], 1);
  EXPECT_EQ(runs["shipping"], 3);
  for (int i = 0; i < 60; ++i) {  // events go on coming for a minute
    time.advance(1s);
    deliver(payment("more_" + std::to_string(i), "t", "k"));
    deliver_to("shipping", payment("box_" + std::to_string(i), "t", "k"));
    drain(one);
  }
  EXPECT_EQ(runs["shipping"], 63);
  EXPECT_LE(runs["payments"], 10) << "after 1, 4, 9, 10, 10 … seconds";
  EXPECT_GE(runs["payments"], 6);
  EXPECT_EQ(number("select sum(attempts) from " + table("webhook_events")), 0);
  EXPECT_EQ(one.counts().pauses, 1);
  EXPECT_EQ(one.counts().failures, 0);
  away = false;
  time.advance(10s);
  drain(one);
  EXPECT_EQ(effects(), 63 + 65);
  EXPECT_EQ(log.count("webhook_source_paused"), 1u);
  EXPECT_EQ(log.count("webhook_source_resumed"), 1u);
  EXPECT_EQ(log.count("webhook_failed"), 0u);
}

// The event that met it was not applied in the end, and no other tells whether it is over.
TEST_P(webhook_failures, an_outage_that_may_be_over_lets_an_idle_worker_sleep) {
  bool away = true;
  webhook::worker one(*db, {.outage_wait = 1s, .outage_wait_max = 10s});
  one.on("payments", "", [&](const received&, transaction&) {
    if (away) throw handler_failed(failure_class::outage, "the bank is away");
    return webhook::answer::ignore;
  });
  deliver(payment("evt_1", "t", "k"));
  drain(one);
  EXPECT_LE(one.idle_wait(), 1s);
  away = false;
  time.advance(2s);
  drain(one);
  EXPECT_EQ(status("evt_1"), "IGNORED");
  EXPECT_GE(one.idle_wait(), 100ms);
}

TEST_P(webhook_failures, an_outage_keeps_no_old_event_from_expiring) {
  bool away = true;
  webhook::worker one(*db, {.keep = 1h});
  one.on("payments", "", unless_away(away));
  apply(payment("old", "t", "k"));
  time.advance(2h);
  for (int i = 0; i < 5; ++i) deliver(payment("evt_" + std::to_string(i), "t", "k"));
  one.run_once();
  EXPECT_EQ(status("old"), "");
}

TEST_P(webhook_failures, an_outage_of_one_event_alone_is_its_own_and_holds_up_nobody) {
  webhook::worker one(*db, {.retry_wait = 1s, .transient_max_age = 1h, .outage_wait = 1s});
  one.on("payments", "", [](const received& event, transaction& tx) {
    if (event.id == "odd") throw handler_failed(failure_class::outage, "its bank is away");
    return log_effect(event, tx);
  });
  deliver(payment("odd", "t", "k"));
  for (int i = 0; i < 100; ++i) {
    deliver(payment("evt_" + std::to_string(i), "t", "k"));
    time.advance(1s);
    drain(one);
  }
  EXPECT_GE(effects(), 99);
  EXPECT_EQ(one.counts().pauses, 1);
  EXPECT_GE(webhook::find(*db, "payments", "odd")->attempts, 3) << "as what will pass";
  time.advance(1h);
  drain(one);
  EXPECT_EQ(status("odd"), "FAILED");
}

TEST_P(webhook_failures, what_passed_before_uses_up_no_attempt_of_an_unknown_failure) {
  int runs_so_far = 0;
  webhook::worker one(*db, {.retry_wait = 1s, .retry_wait_max = 1s, .attempts_max = 3});
  one.on("payments", "", [&](const received&, transaction&) -> answer {
    if (++runs_so_far <= 9) throw handler_failed(failure_class::transient, "locked");
    throw std::runtime_error("who knows");
  });
  deliver(payment("evt", "t", "k"));
  for (int i = 0; i < 11; ++i) {
    drain(one);
    time.advance(1s);
  }
  EXPECT_EQ(runs_so_far, 11);
  EXPECT_EQ(status("evt"), "RECEIVED");
  drain(one);
  EXPECT_EQ(status("evt"), "FAILED") << "the third that nobody knew";
  EXPECT_EQ(webhook::find(*db, "payments", "evt")->attempts, 12);
}

TEST_P(webhook_failures, workers_that_start_at_once_take_nobody_for_a_crash) {
  constexpr int events = 40;
  for (int i = 0; i < events; ++i) deliver(payment("evt_" + std::to_string(i), "t", std::to_string(i)));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
      threads.emplace_back([&] {
        webhook::worker one(*db);
        one.on("payments", "", log_effect);
        for (int round = 0; round < 2000 && effects() < events; ++round) one.run_once();
      });
  }
  EXPECT_EQ(effects(), events);
  EXPECT_EQ(number("select count(*) from " + table("webhook_events") + " where status <> 'APPLIED'"), 0);
  EXPECT_EQ(log.count("webhook_suspected"), 0u);
}

// Proves A3: one that ends its process is found, and the rest goes on
TEST_P(webhook_failures, an_event_over_which_processes_die_is_given_up_and_the_rest_goes_on) {
  for (const auto* id : {"1", "killer", "3"}) deliver(payment(id, "t", id));
  const auto run_process = [&](int signal) {
    db.reset();  // with its threads: a fork takes none along
    test::child_process child([&] {
      db = open();
      webhook::worker one(*db);
      one.on("payments", "", [&](const received& event, transaction& tx) {
        const auto said = log_effect(event, tx);
        if (event.id == "killer") ::raise(signal);
        return said;
      });
      // The server may hold the row of a session that was killed for a moment.
      while (number("select count(*) from " + table("webhook_events") + " where next_at is not null") > 0) {
        drain(one);
        std::this_thread::sleep_for(5ms);
        time.advance(1s);
      }
      return 0;
    });
    const auto ended = child.wait();
    db = open();
    return ended;
  };
  EXPECT_EQ(run_process(SIGKILL), -SIGKILL);
  EXPECT_EQ(run_process(SIGABRT), -SIGABRT);
  EXPECT_EQ(run_process(SIGKILL), -SIGKILL);
  EXPECT_EQ(run_process(SIGKILL), 0) << "three have died";
  EXPECT_EQ(effects_of("1"), 1);
  EXPECT_EQ(effects_of("killer"), 0);
  EXPECT_EQ(effects_of("3"), 1);
  EXPECT_EQ(status("killer"), "FAILED");
  EXPECT_NE(webhook::find(*db, "payments", "killer")->last_error.find("process"), std::string::npos);
  // Mended, and tried anew.
  EXPECT_TRUE(webhook::retry(*db, "payments", "killer"));
  webhook::worker mended(*db);
  mended.on("payments", "", log_effect);
  drain(mended);
  EXPECT_EQ(effects_of("killer"), 1);
}

TEST_P(webhook_failures, a_failure_and_a_clean_stop_are_no_crash) {
  deliver(payment("evt", "t", "k"));
  for (int start = 0; start < 8; ++start) {  // as many workers, one after the other
    webhook::worker one(*db, {.attempts_max = 100});
    one.on("payments", "", [&](const received&, transaction&) -> answer {
      if (start % 2 == 0) throw std::runtime_error("who knows");
      throw error(errc::cancelled, "the process is told to stop");
    });
    try {
      drain(one);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::cancelled);
    }
    time.advance(10min);
  }
  EXPECT_EQ(status("evt"), "RECEIVED");
  EXPECT_EQ(webhook::find(*db, "payments", "evt")->attempts, 4);
}

INSTANTIATE_TEST_SUITE_P(databases, webhook_failures, ::testing::Values(dialect::sqlite, dialect::postgres),
                         test::dialect_name);

}  // namespace
}  // namespace settle
