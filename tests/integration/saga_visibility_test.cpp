// What sagas show of themselves, on both databases: steps in metrics, bodies that hold their thread, types
// that no process knows, causes of events; and that nothing spins or waits for good.
#include <atomic>
#include <thread>

#include "saga/shared.hpp"
#include "settle/publish.hpp"
#include "settle/saga.hpp"
#include "support/saga_world.hpp"

namespace settle::test {

struct go_ahead {
  std::string trip;
};

}  // namespace settle::test

template <>
struct settle::codec<settle::test::go_ahead> {
  static constexpr std::string_view topic = "signals";
  static constexpr std::string_view type = "go.ahead";
  static std::string key(const test::go_ahead& g) { return g.trip; }
  static std::string encode(const test::go_ahead& g) { return g.trip; }
  static test::go_ahead decode(std::string_view bytes) { return {std::string(bytes)}; }
};

namespace settle::test {
namespace {

testing::manual_time* clock_of_bodies = nullptr;
std::atomic<bool> line_is_open = true;
std::vector<std::string> line_says;

const auto flight = booking("flight");
const auto hotel = booking("hotel");
const auto announce = local("announce", [](transaction& tx, const trip& t) { publish(tx, go_ahead{t.id}); });
const auto charge = remote("charge", [](call&, const trip&) {
                      const auto word = line_says.empty() ? "" : line_says.front();
                      if (!line_says.empty()) line_says.erase(line_says.begin());
                      if (word == "lost") throw std::runtime_error("no answer");
                      if (word == "refuse") throw step_refused("no");
                    }).undo([](call&, const trip&) {});
const auto slow_charge = remote("slow_charge", [](call&, const trip&) {
                           while (!line_is_open) std::this_thread::sleep_for(1ms);
                         }).undo([](call&, const trip&) {});

flow<> think_long(saga& s, const trip& t) {
  co_await s.run(flight, t);
  clock_of_bodies->advance(60ms);  // no step: the thread is held meanwhile
  co_await s.run(hotel, t);
}
const saga_type thinker("thinker", 1, think_long, {flight, hotel});

flow<> wait_and_go(saga& s, const trip& t) {
  co_await s.run(flight, t);
  co_await s.wait_for<go_ahead>(t.id);
  co_await s.run(hotel, t);
}
const saga_type waiter("waiter", 1, wait_and_go, {flight, hotel});
flow<> fail_then_wait(saga s, const trip& t) { co_await s.run(charge, t); }
flow<> wait_in_branch(saga s, const trip& t) { co_await s.wait_for<go_ahead>(t.id); }
flow<> wait_beside_a_call(saga& s, const trip& t) {
  auto one = wait_in_branch(s.branch(0), t);
  auto two = fail_then_wait(s.branch(1), t);
  co_await s.all(one, two);
  co_await s.run(hotel, t);
}
const auto risky = remote("charge", [](call&, const trip&) {
                     const auto word = line_says.empty() ? "" : line_says.front();
                     if (!line_says.empty()) line_says.erase(line_says.begin());
                     if (word == "lost") throw std::runtime_error("no answer");
                   }).on_unknown(unknown::hold);
const saga_type beside_call("beside_call", 1, wait_beside_a_call, {risky, hotel});

const auto announcing = saga_of<trip>("announcing", 1, flight, announce);
const auto paying = saga_of<trip>("paying", 1, flight, charge, hotel);
const auto slow_paying = saga_of<trip>("slow_paying", 1, flight, slow_charge);
const auto old_trip = saga_of<trip>("growing", 1, flight);
const auto new_trip = saga_of<trip>("growing", 2, flight, hotel);

struct visible_sagas : saga_tests {
  void SetUp() override {
    saga_tests::SetUp();
    clock_of_bodies = &time;
    line_is_open = true;
    line_says.clear();
  }
  void TearDown() override { line_is_open = true; }
  std::int64_t outcomes(const std::string& type, const std::string& step, const std::string& outcome) {
    return counters.value("settle_saga_step_outcomes_total",
                          {{"host", "trips"}, {"type", type}, {"step", step}, {"outcome", outcome}});
  }
  void pass(saga_host& host, duration time_passes, duration at_once = 1s) {
    for (duration passed{}; passed < time_passes; passed += at_once) {
      time.advance(at_once);
      drain(host);
    }
  }
};

// Proves S1
TEST_P(visible_sagas, whose_body_holds_its_thread_for_long_are_named) {
  saga_host host(*db, options());
  host.add(thinker).add(old_trip);
  host.start(thinker, "t1", trip{"t1"});
  host.start(old_trip, "t2", trip{"t2"});
  drain(host);
  EXPECT_EQ(log.count("saga_body_is_slow host=trips"), 1U);
  EXPECT_EQ(counters.value("settle_saga_slow_bodies_total", {{"host", "trips"}, {"type", "thinker"}}), 1);
  EXPECT_EQ(counters.value("settle_saga_slow_bodies_total", {{"host", "trips"}, {"type", "growing"}}), 0);
}

// Proves S1
TEST_P(visible_sagas, count_what_became_of_each_step_and_how_long_it_took) {
  saga_host host(*db, options());
  host.add(paying);
  line_says = {"lost"};
  host.start(paying, "t1", trip{"t1", "hotel:refuse"});
  drain(host);
  pass(host, 5s);
  EXPECT_EQ(outcomes("paying", "flight", "done"), 1);
  EXPECT_EQ(outcomes("paying", "flight", "undone"), 1);
  EXPECT_EQ(outcomes("paying", "charge", "started"), 1);
  EXPECT_EQ(outcomes("paying", "charge", "unknown"), 1);
  EXPECT_EQ(outcomes("paying", "charge", "retried"), 1);
  EXPECT_EQ(outcomes("paying", "charge", "done"), 1);
  EXPECT_EQ(outcomes("paying", "charge", "undone"), 1);
  EXPECT_EQ(outcomes("paying", "hotel", "refused"), 1);
  const auto times =
      counters.times("settle_saga_step_seconds",
                     {{"host", "trips"}, {"type", "paying"}, {"step", "charge"}, {"outcome", "done"}});
  EXPECT_EQ(times.count(), 1);
  EXPECT_GE(times.sum(), 1s);
  EXPECT_GE(log.count("saga_step host=trips"), 8U);
  host.start(paying, "t2", trip{"t2", "hotel:refuse undo_flight:fail"});
  pass(host, 20min, 15s);
  EXPECT_EQ(outcomes("paying", "flight", "held"), 1);
}

// Proves S1
TEST_P(visible_sagas, that_no_process_knows_wait_and_are_shown) {
  {
    saga_host newer(*db, options());
    newer.add(old_trip).add(new_trip);
    newer.start(new_trip, "t1", trip{"t1"});
    newer.leave();
  }
  saga_host older(*db, options());
  older.add(old_trip);
  drain(older);
  pass(older, 2min, 1min);
  const auto of_it = [&] {
    return counters.value("settle_sagas_without_process",
                          {{"host", "trips"}, {"type", "growing"}, {"version", "2"}});
  };
  EXPECT_EQ(of_it(), 1);
  EXPECT_EQ(log.count("sagas_without_process"), 1U);
  {
    auto look = db->read();
    const auto shown = sagas::find_stranded(look);
    ASSERT_EQ(shown.size(), 1U);
    EXPECT_EQ(shown[0].type, "growing");
    EXPECT_EQ(shown[0].version, 2);
    EXPECT_EQ(shown[0].waiting, 1);
  }
  EXPECT_EQ(effects("t1"), texts{});
  saga_host newer(*db, options());
  newer.add(old_trip).add(new_trip);
  drain(newer);
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel"}));
  pass(older, 2min, 1min);
  EXPECT_EQ(of_it(), 0);
}

// Proves S1
TEST_P(visible_sagas, give_the_events_of_their_steps_what_they_were_started_for) {
  saga_host host(*db, options());
  host.add(announcing);
  auto tx = db->begin();
  tx.set_cause({"order 7", "click", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=b"});
  const auto caused = host.start(tx, announcing, "t1", trip{"t1"});
  tx.commit();
  const auto alone = host.start(announcing, "t2", trip{"t2"});
  drain(host);
  const auto sent = published();
  ASSERT_EQ(sent.size(), 2U);
  for (const auto& one : sent) {
    const auto of = one.key == "t1" ? caused : alone;
    EXPECT_EQ(one.extensions.at("causationid"), of.text());
    EXPECT_EQ(one.extensions.at("correlationid"), one.key == "t1" ? "order 7" : of.text());
    EXPECT_EQ(one.extensions.contains("traceparent"), one.key == "t1");
  }
}

// Proves S2
TEST_P(visible_sagas, whose_deadline_passes_during_a_call_wait_for_its_answer_and_do_not_spin) {
  auto with = options();
  with.call_threads = 1;
  saga_host host(*db, with);
  host.add(slow_paying);
  line_is_open = false;
  const auto id = host.start(slow_paying, "t1", trip{"t1"}, {.deadline = time.now() + 1s});
  drain(host);
  time.advance(2s);
  drain(host);
  const auto ticks = host.counts().ticks;
  for (int i = 0; i < 10; ++i) drain(host);
  EXPECT_EQ(host.counts().ticks, ticks);
  line_is_open = true;
  for (int i = 0; i < 5000 && status(id) != "COMPENSATED"; ++i) {
    drain(host);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(cell("last_error", id), "its deadline has passed");
}

// Proves S3
TEST_P(visible_sagas, get_what_came_while_they_were_held) {
  saga_host host(*db, options());
  host.add(beside_call);
  host.on<go_ahead>([](const go_ahead& g) { return g.trip; });
  line_says = {"lost"};
  const auto id = host.start(beside_call, "t1", trip{"t1"});
  drain(host);
  EXPECT_EQ(status(id), "HELD");
  {
    auto tx = db->begin();
    host.deliver(tx, "e1", go_ahead{"t1"});
    tx.commit();
  }
  drain(host);
  EXPECT_TRUE(order_saga(*db, id, saga_order::mark_done, {.who = "ann", .reason = "it was"}));
  drain(host);
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(effects("t1"), texts{"hotel"});
}

// Proves S1
TEST_P(visible_sagas, that_have_ended_leave_also_a_host_that_is_never_idle) {
  saga_host host(*db, options());
  host.add(old_trip);
  for (int i = 0; i < 100; ++i) host.start(old_trip, "old" + std::to_string(i), trip{"old"});
  drain(host);
  time.advance(31 * 24h);
  for (int i = 0; i < 20; ++i) {
    host.start(old_trip, "new" + std::to_string(i), trip{"new"});
    EXPECT_TRUE(host.run_once());
  }
  EXPECT_EQ(number("select count(*) from " + table("sagas") + " where entity_id like 'old%'"), 0);
}

INSTANTIATE_TEST_SUITE_P(databases, visible_sagas, both_databases, database_name);

}  // namespace
}  // namespace settle::test
