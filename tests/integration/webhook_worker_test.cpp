// Journaled webhooks, applied later: early, stale, failing and old ones; on both databases.
#include <atomic>
#include <thread>

#include "settle/consume.hpp"
#include "settle/failure.hpp"
#include "settle/relay.hpp"
#include "support/expect_error.hpp"
#include "support/webhook_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using webhook::answer;
using webhook::outcome;
using webhook::received;

struct webhook_worker : test::webhook_world {
  std::unique_ptr<webhook::worker> make(webhook::handler with, const webhook::worker_options& options = {}) {
    auto one = std::make_unique<webhook::worker>(*db, options);
    one->on("payments", "", std::move(with));
    return one;
  }

  std::vector<std::string> effects_in_order() {
    const auto rows = db->read().execute(on_postgres() ? "select event from effect_log order by ctid"
                                                       : "select event from effect_log order by rowid");
    std::vector<std::string> all;
    for (std::size_t i = 0; i < rows.size(); ++i) all.push_back(rows[i][0].text());
    return all;
  }
};

// Proves A3: journaled first and applied by a worker
TEST_P(webhook_worker, applies_each_journaled_event_once) {
  for (int i = 0; i < 5; ++i) deliver(payment("evt_" + std::to_string(i), "t", "k"));
  const auto one = make(log_effect), other = make(log_effect);
  drain(*one);
  deliver(payment("evt_0", "t", "k"));
  drain(*other);
  EXPECT_EQ(effects(), 5);
  EXPECT_EQ(one->counts().applied, 5);
  EXPECT_EQ(other->counts().applied, 0);
  EXPECT_EQ(status("evt_0"), "APPLIED");
}

TEST_P(webhook_worker, chooses_the_handler_by_type_and_ignores_what_has_none) {
  deliver(payment("a", "paid", "k"));
  deliver(payment("b", "refunded", "k"));
  webhook::worker one(*db);
  one.on("payments", "paid", log_effect);
  drain(one);
  EXPECT_EQ(effects(), 1);
  EXPECT_EQ(status("b"), "IGNORED");
  EXPECT_EQ(one.counts().ignored, 1);
  // A source without any handler is somebody else's.
  deliver(payment("c", "paid", "k"));
  webhook::worker elsewhere(*db);
  elsewhere.on("others", "", log_effect);
  drain(elsewhere);
  EXPECT_EQ(status("c"), "RECEIVED");
}

// Proves A3: early events wait for their key
TEST_P(webhook_worker, an_early_event_waits_until_something_of_its_key_is_applied) {
  deliver(payment("captured-7", "captured", "7"));
  const auto one = make(in_order, {.park_wait = 1h});
  drain(*one);
  EXPECT_EQ(status("captured-7"), "PARKED");
  EXPECT_EQ(effects(), 0) << "what it wrote was undone";
  deliver(payment("authorized-8", "authorized", "8"));
  drain(*one);
  EXPECT_EQ(status("captured-7"), "PARKED") << "another key";
  deliver(payment("authorized-7", "authorized", "7"));
  drain(*one);
  EXPECT_EQ(status("captured-7"), "APPLIED");
  EXPECT_EQ(effects_in_order(), (std::vector<std::string>{"authorized-8", "authorized-7", "captured-7"}));
  EXPECT_EQ(one->counts().parked, 1);
}

TEST_P(webhook_worker, one_that_was_applied_at_once_wakes_the_early_ones_too) {
  EXPECT_EQ(apply(payment("captured-7", "captured", "7"), in_order).what, outcome::parked);
  EXPECT_EQ(apply(payment("authorized-7", "authorized", "7"), in_order).what, outcome::applied);
  const auto one = make(in_order);
  drain(*one);
  EXPECT_EQ(effects_in_order(), (std::vector<std::string>{"authorized-7", "captured-7"}));
}

TEST_P(webhook_worker, an_early_event_is_tried_again_after_a_time_and_given_up_after_a_long_one) {
  deliver(payment("captured-7", "captured", "7"));
  const auto one = make(in_order, {.park_wait = 10s, .park_wait_max = 20s, .park_max_age = 60s});
  drain(*one);
  time.advance(9s);
  drain(*one);
  EXPECT_EQ(one->counts().parked, 1);
  time.advance(1s);
  drain(*one);
  EXPECT_EQ(one->counts().parked, 2);
  time.advance(50s);
  drain(*one);
  EXPECT_EQ(status("captured-7"), "FAILED");
  EXPECT_EQ(log.count("webhook_given_up"), 1u);
  EXPECT_EQ(one->counts().given_up, 1);
  // An operator mends it.
  auto tx = db->begin();
  tx.execute("insert into effect_log (event, kind) values ('authorized-7', 'authorized')");
  tx.commit();
  EXPECT_TRUE(webhook::retry(*db, "payments", "captured-7"));
  EXPECT_FALSE(webhook::retry(*db, "payments", "captured-7"));
  drain(*one);
  EXPECT_EQ(status("captured-7"), "APPLIED");
}

// Proves A3: stale ones are ignored by the provider's time, where the source says so
TEST_P(webhook_worker, an_event_older_than_what_was_applied_is_stale_by_choice) {
  auto newest = payments();
  newest.ignore_stale = true;
  const webhook::inbox states(newest);
  const auto one = make(log_effect);
  deliver(states, *db, payment("second", "t", "7", 200));
  drain(*one);
  deliver(states, *db, payment("first", "t", "7", 100));
  deliver(states, *db, payment("same", "t", "7", 200));
  deliver(states, *db, payment("other", "t", "8", 100));
  drain(*one);
  EXPECT_EQ(status("first"), "STALE");
  EXPECT_EQ(status("same"), "APPLIED");
  EXPECT_EQ(status("other"), "APPLIED");
  EXPECT_EQ(apply(states, *db, payment("zeroth", "t", "7", 50), log_effect).what, outcome::stale);
  EXPECT_EQ(apply(states, *db, payment("third", "t", "7", 300), log_effect).what, outcome::applied);
  EXPECT_EQ(apply(payment("counts", "t", "7", 10)).what, outcome::applied)
      << "a source where each one counts";
  EXPECT_EQ(one->counts().stale, 1);
}

// Proves A3
TEST_P(webhook_worker, one_that_fails_is_undone_and_tried_again_and_others_do_not_wait) {
  int failures = 2;
  const auto one = make(
      [&](const received& event, transaction& tx) {
        log_effect(event, tx);
        if (event.id == "bad" && failures-- > 0) throw std::runtime_error("try again");
        return answer::done;
      },
      {.retry_wait = 1s});
  deliver(payment("bad", "t", "k"));
  deliver(payment("good", "t", "k"));
  drain(*one);
  EXPECT_EQ(effects(), 1);
  EXPECT_EQ(webhook::find(*db, "payments", "bad")->last_error, "try again");
  time.advance(1s);
  drain(*one);
  EXPECT_EQ(webhook::find(*db, "payments", "bad")->attempts, 2);
  time.advance(3s);
  drain(*one);
  EXPECT_EQ(status("bad"), "RECEIVED") << "the second pause is four seconds";
  time.advance(1s);
  drain(*one);
  EXPECT_EQ(status("bad"), "APPLIED");
  EXPECT_EQ(effects_of("bad"), 1);
  EXPECT_EQ(one->counts().failures, 2);
}

TEST_P(webhook_worker, gives_up_what_never_works_at_once_and_the_unknown_after_some_attempts) {
  const auto one = make(
      [](const received& event, transaction&) -> answer {
        if (event.id == "never") throw handler_failed(failure_class::permanent, "closed");
        if (event.id == "odd") throw 42;
        throw std::runtime_error("who knows");
      },
      {.retry_wait = 1s, .attempts_max = 3});
  for (const auto* id : {"never", "odd", "unknown"}) deliver(payment(id, "t", "k"));
  drain(*one);
  EXPECT_EQ(status("never"), "FAILED");
  EXPECT_EQ(status("unknown"), "RECEIVED");
  for (int i = 0; i < 4; ++i) {
    time.advance(10s);
    drain(*one);
  }
  EXPECT_EQ(status("unknown"), "FAILED");
  EXPECT_EQ(status("odd"), "FAILED");
  EXPECT_EQ(webhook::find(*db, "payments", "unknown")->attempts, 3);
  EXPECT_EQ(one->counts().given_up, 3);
}

TEST_P(webhook_worker, removes_nothing_if_that_is_left_to_others) {
  deliver(payment("old", "t", "k"));
  const auto one = make(in_order, {.keep = 0s});
  drain(*one);
  time.advance(24h * 3650);
  drain(*one);
  EXPECT_EQ(status("old"), "APPLIED");
  EXPECT_EQ(webhook::expire(*db), 1);
  EXPECT_EQ(status("old"), "");
}

// Proves A3: the order follows by event
TEST_P(webhook_worker, forwards_webhooks_as_events_that_keep_their_id) {
  const auto broker = sqlite::open_broker(dir.file("broker.db"), {.env = {.time = &time, .log = &log}});
  const auto body = payment("evt_1", "charge.succeeded", "ch_7");
  deliver(body);
  const auto one = make(webhook::forward_to("payments"));
  drain(*one);
  EXPECT_EQ(published(), 1);
  relay sending(*db, broker->publishing());
  consumer orders(*db, *broker, {.name = "orders"});
  std::vector<message> seen;
  orders.on("payments", "charge.succeeded", [&](const message& m, transaction&) { seen.push_back(m); });
  const auto flow = [&] {
    while (sending.run_once() || orders.run_once()) {
    }
  };
  flow();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].id, webhook::forwarded_id("payments", "evt_1").text());
  EXPECT_EQ(seen[0].key, "ch_7");
  EXPECT_EQ(seen[0].payload, body);
  EXPECT_EQ(seen[0].extensions["webhooksource"], "payments");
  EXPECT_EQ(seen[0].extensions["webhookid"], "evt_1");
  EXPECT_NE(webhook::forwarded_id("a", "bc"), webhook::forwarded_id("ab", "c"));
  // Even if somebody lost the journal: consumers know the event.
  auto tx = db->begin();
  tx.execute("delete from " + table("webhook_events"));
  tx.commit();
  deliver(body);
  drain(*one);
  flow();
  EXPECT_EQ(seen.size(), 1u);
}

// Proves A3: the journal does not grow for ever, and forgetting does not double
TEST_P(webhook_worker, removes_what_is_over_after_a_time_and_never_runs_what_it_may_have_forgotten) {
  const auto seconds = [&] {
    return std::chrono::floor<std::chrono::seconds>(time.now()).time_since_epoch().count();
  };
  const auto old = payment("old", "t", "k", seconds());
  const auto timeless = R"({"id":"timeless","type":"t"})";
  deliver(old);
  deliver(payment("captured-7", "captured", "7", seconds()));
  deliver(payment("never", "fail", "k", seconds()));
  webhook::worker_options options{.park_wait_max = 100h * 24, .park_max_age = 100h * 24};
  const auto one = make(in_order, options);
  one->on("payments", "fail", [](const received&, transaction&) -> answer {
    throw handler_failed(failure_class::permanent, "closed");
  });
  drain(*one);
  time.advance(24h * 30);
  drain(*one);
  EXPECT_EQ(status("old"), "APPLIED") << "not a moment too early";
  time.advance(2min);
  drain(*one);
  EXPECT_EQ(status("old"), "");
  EXPECT_EQ(status("captured-7"), "PARKED");
  EXPECT_EQ(status("never"), "FAILED");
  EXPECT_EQ(one->counts().expired, 1);
  EXPECT_EQ(number("select count(*) from " + table("webhook_keys") + " where event_key = 'k'"), 1)
      << "an event of it still waits for an operator";
  // A copy of what was removed, signed anew.
  EXPECT_EQ(deliver(old).what, outcome::too_late);
  EXPECT_EQ(apply(payment("elder", "t", "k", seconds() - 24 * 3600 * 40)).what, outcome::too_late);
  drain(*one);
  EXPECT_EQ(effects_of("old"), 1);
  EXPECT_EQ(effects_of("elder"), 0);
  EXPECT_EQ(deliver(payment("new", "t", "k", seconds())).what, outcome::journaled);
  EXPECT_EQ(deliver(timeless).what, outcome::journaled);
  EXPECT_TRUE(webhook::retry(*db, "payments", "elder")) << "an operator knows better";
  drain(*one);
  EXPECT_EQ(effects_of("elder"), 1);
}

TEST_P(webhook_worker, removes_in_slices) {
  for (int i = 0; i < 25; ++i) apply(payment("evt_" + std::to_string(i), "t", std::to_string(i)));
  EXPECT_EQ(webhook::expire(*db, 1h, 10), 0);
  time.advance(2h);
  EXPECT_EQ(webhook::expire(*db, 1h, 10), 10);
  EXPECT_EQ(webhook::expire(*db, 1h, 10), 10);
  EXPECT_EQ(webhook::expire(*db, 1h, 10), 5);
  EXPECT_EQ(number("select count(*) from " + table("webhook_keys")), 0);
}

// Proves A3: the copy has looked at the horizon, and then waits for the row that is being removed
TEST_P(webhook_worker, a_copy_that_comes_while_its_event_is_removed_does_not_run) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time.now()).time_since_epoch().count();
  const auto body = payment("evt_1", "t", "k", seconds);
  EXPECT_EQ(apply(body).what, outcome::applied);
  time.advance(2h);
  struct copy_before_the_commit final : fault_points {
    void reached(std::string_view point) override {
      if (point == "webhook.expire.before") meet();
    }
    std::function<void()> meet;
  } faults;
  std::optional<outcome> said;
  std::jthread copying;
  faults.meet = [&] {
    copying = std::jthread([&] { said = apply(body).what; });
    // On SQLite it waits for its turn to write.
    while (on_postgres() &&
           own->run("select count(*) from pg_stat_activity where wait_event_type = 'Lock'") != "1")
      std::this_thread::yield();
  };
  EXPECT_EQ(webhook::expire(*open(&faults), 1h), 1);
  copying.join();
  EXPECT_EQ(said, outcome::too_late);
  EXPECT_EQ(effects_of("evt_1"), 1);
}

TEST_P(webhook_worker, a_clock_that_was_set_back_does_not_put_events_off) {
  testing::manual_time ahead(time.now() + 24h);
  const auto early = open(nullptr, &ahead);
  deliver(inbox, *early, payment("evt_1", "t", "k"));
  const auto one = make(log_effect);
  drain(*one);
  EXPECT_EQ(effects(), 0);
  time.advance(2min);
  drain(*one);
  drain(*one);
  EXPECT_EQ(effects(), 1);
}

// Every event of a key needs the one before, and they come in the wrong order, to workers that run at once.
// The rows of one are woken while another tries them. Proves A3
TEST_P(webhook_worker, many_workers_at_once_apply_everything_once_and_early_ones_in_their_turn) {
  constexpr int keys = 6, steps = 5;
  for (int step = steps; step > 0; --step)
    for (int key = 0; key < keys; ++key)
      deliver(payment(std::to_string(key) + "-" + std::to_string(step), std::to_string(step),
                      std::to_string(key)));
  const auto next_step = [](const received& event, transaction& tx) {
    const auto done =
        tx.execute("select count(*) from effect_log where kind = $1", {event.key})[0][0].integer();
    tx.execute("insert into effect_log (event, kind) values ($1, $2)", {event.id, event.key});
    return done + 1 == std::stoi(event.type) ? answer::done : answer::not_yet;
  };
  std::atomic<int> left = 4;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        const auto mine = make(next_step, {.park_wait = 100ms});
        for (int round = 0; round < 2000 && effects() < keys * steps; ++round) {
          mine->run_once();
          time.advance(1ms);
        }
        --left;
      });
  }
  EXPECT_EQ(effects(), keys * steps);
  for (int key = 0; key < keys; ++key)
    for (int step = 1; step <= steps; ++step)
      EXPECT_EQ(effects_of(std::to_string(key) + "-" + std::to_string(step)), 1);
}

TEST_P(webhook_worker, refuses_options_and_handlers_that_cannot_work) {
  EXPECT_EQ(test::code_of([&] { webhook::worker(*db, {.batch_max = 0}); }), errc::invalid_argument);
  EXPECT_EQ(test::code_of([&] { webhook::worker(*db, {.keep = -1s}); }), errc::invalid_argument);
  webhook::worker one(*db);
  EXPECT_EQ(test::code_of([&] { one.on("", "", log_effect); }), errc::invalid_name);
  EXPECT_EQ(test::code_of([&] { one.on("payments", "", {}); }), errc::invalid_argument);
}

// Proves A3: what was just sent is not taken for a copy of what was forgotten
TEST_P(webhook_worker, refuses_to_keep_events_for_so_short_that_new_ones_would_be_too_late) {
  for (const duration keep : {duration(1s), duration(10min), duration(59min)}) {
    EXPECT_EQ(test::code_of([&] { webhook::worker(*db, {.keep = keep}); }), errc::invalid_argument);
    EXPECT_EQ(test::code_of([&] { webhook::expire(*db, keep); }), errc::invalid_argument);
  }
  for (const duration keep : {duration(0s), duration(-2h)})
    EXPECT_EQ(test::code_of([&] { webhook::expire(*db, keep); }), errc::invalid_argument);
  const auto seconds = [&] {
    return std::chrono::floor<std::chrono::seconds>(time.now()).time_since_epoch().count();
  };
  apply(payment("old", "t", "k", seconds()));
  time.advance(1h + 1s);
  EXPECT_EQ(webhook::expire(*db, 1h), 1);
  EXPECT_EQ(apply(payment("new", "t", "k", seconds())).what, outcome::applied);
}

INSTANTIATE_TEST_SUITE_P(databases, webhook_worker, ::testing::Values(dialect::sqlite, dialect::postgres),
                         test::dialect_name);

}  // namespace
}  // namespace settle
