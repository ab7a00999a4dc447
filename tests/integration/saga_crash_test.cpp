// Sagas with a failure and a kill at every fault point, and two owners of one saga.
#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include "settle/error.hpp"
#include "settle/saga.hpp"
#include "support/child_process.hpp"
#include "support/expect_error.hpp"
#include "support/saga_world.hpp"

namespace settle::test {
namespace {

const auto flight = booking("flight");
const auto hotel = booking("hotel");
const auto car = booking("car");

// The other side keeps its own books, as rows in the same database, and tells copies by their key.
database* books = nullptr;
void enter(call& c, const std::string& id, const std::string& what) {
  auto tx = books->begin();
  tx.execute("insert into bank (call_key, saga, what) values ($1, $2, $3) on conflict (call_key) do nothing",
             {c.key(), id, what});
  tx.commit("bank");
}
const auto charge = remote("charge", [](call& c, const trip& t) {
                      enter(c, t.id, "charge");
                    }).undo([](call& c, const trip& t) { enter(c, t.id, "refund"); });

flow<> travel(saga& s, const trip& t) {
  co_await s.run(flight, t);
  co_await s.run(charge, t);
  co_await s.sleep(50ms);
  co_await s.run(hotel, t);
  co_await s.run(car, t);
}
const saga_type trip_type("trip", 1, travel, {flight, charge, hotel, car});

// Stops its process, once, in the middle of the step.
bool stops_here = false;
const auto stopping = local("stopping", [](transaction& tx, const trip& t) {
  note(tx, t.id, "stopping");
  if (std::exchange(stops_here, false)) ::raise(SIGSTOP);
});
const auto stopped_trip = saga_of<trip>("stopped_trip", 1, flight, stopping, hotel);

// The other side is reached, and then the process is stopped before it hears the answer.
const auto slow_charge = remote("slow_charge", [](call& c, const trip& t) {
                           enter(c, t.id, "charge");
                           if (std::exchange(stops_here, false)) ::raise(SIGSTOP);
                         }).on_unknown(unknown::repeat);
const auto slow_trip = saga_of<trip>("slow_trip", 1, flight, slow_charge, hotel);

struct crashing_sagas : saga_tests {
  void begin_anew() {
    run("delete from trip_effects; delete from bank; delete from " + table("sagas") + "; delete from " +
        table("saga_journal"));
  }

  // One process: starts two sagas and runs until they have ended.
  void serve(database& on) {
    books = &on;
    saga_host host(on, options());
    host.add(trip_type);
    host.start(trip_type, "good", trip{"good"});
    host.start(trip_type, "bad", trip{"bad", "car:refuse"});
    for (int turn = 0; turn < 200; ++turn) {
      while (host.run_once()) {
      }
      time.advance(50ms);
    }
  }

  texts bank_of(const std::string& id) {
    const auto found = db->read().execute("select what from bank where saga = $1 order by what", {id});
    texts all;
    for (std::size_t i = 0; i < found.size(); ++i) all.push_back(found[i][0].text());
    return all;
  }
};

// Proves S4
TEST_P(crashing_sagas, at_any_fault_point_lose_and_double_nothing) {
  const auto explored = testing::explore({
      .prepare = [&] { begin_anew(); },
      .run = [&](fault_points& faults) { serve(*open(&faults)); },
      .recover = [&] { serve(*open()); },
      .check =
          [&](const std::string& where) {
            EXPECT_EQ(effects("good"), (texts{"flight", "hotel", "car"})) << where;
            EXPECT_EQ(effects("bad"), (texts{"flight", "hotel", "undo hotel of bad", "undo flight of bad"}))
                << where;
            EXPECT_EQ(bank_of("good"), texts{"charge"}) << where;
            EXPECT_EQ(bank_of("bad"), (texts{"charge", "refund"})) << where;
            EXPECT_EQ(
                rows("select entity_id || ' ' || status from " + table("sagas") + " order by entity_id"),
                (texts{"bad COMPENSATED", "good COMPLETED"}))
                << where;
          },
  });
  for (const auto* point : {"saga.start.after", "saga.refresh.before", "saga.take_over.after",
                            "saga.step.before", "saga.step.after", "saga.tick.before", "saga.tick.after",
                            "saga.send.before", "saga.send.after", "bank.before", "bank.after"})
    EXPECT_TRUE(std::ranges::count(explored.points, point)) << point;
}

// Proves S4
TEST_P(crashing_sagas, of_a_replaced_owner_cannot_be_written_by_it) {
  books = db.get();
  saga_host first(*db, options()), second(*db, options());
  first.add(trip_type);
  second.add(trip_type);
  const auto id = first.start(trip_type, "t1", trip{"t1"});
  drain(first);
  EXPECT_EQ(effects("t1"), texts{"flight"});
  time.advance(11s);  // its lease is over, and it does not know yet
  run("update " + table("shares") + " set lease_until = 0");
  drain(second);
  time.advance(11s);
  drain(second);
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_NO_THROW(drain(first));
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "car"}));
  EXPECT_EQ(bank_of("t1"), texts{"charge"});
}

// With the clock of the machine, until it has ended there or a while has passed.
void run_for_real(database& own, const std::function<bool()>& enough) {
  saga_host host(own, {.name = "trips", .call_threads = 0, .lease_ttl = 1s, .takeover_wait = 300ms});
  host.add(stopped_trip).add(slow_trip);
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!enough() && std::chrono::steady_clock::now() < until) {
    try {
      if (host.run_once()) continue;
    } catch (const error&) {  // its session was ended, or it was replaced
    }
    std::this_thread::sleep_for(20ms);
  }
}

// Proves S4
TEST_P(crashing_sagas, of_an_owner_that_was_stopped_go_on_elsewhere_and_it_writes_nothing_when_it_wakes) {
  if (!on_postgres()) GTEST_SKIP() << "on SQLite everybody waits for the one writer";
  saga_host starter(*db, options());
  starter.add(stopped_trip).add(slow_trip);
  for (const auto& [type, id] : {std::pair(&stopped_trip, "in a step"), std::pair(&slow_trip, "in a call")}) {
    const auto started = starter.start(*type, id, trip{id});
    child_process stopped([&, id = id] {
      stops_here = true;
      quiet_log quiet;
      auto own = postgres::open(shared->conninfo(), {.env = {.log = &quiet}});
      books = own.get();
      int turns = 0;
      run_for_real(*own, [&] { return !stops_here && ++turns > 100; });
      return 0;
    });
    stopped.await_stop();
    auto own = postgres::open(shared->conninfo(), {.env = {.log = &log}});
    books = own.get();
    run_for_real(*own, [&] { return status(started) != "RUNNING"; });
    EXPECT_EQ(status(started), "COMPLETED") << id;
    stopped.resume();
    EXPECT_EQ(stopped.wait(), 0);
  }
  EXPECT_EQ(effects("in a step"), (texts{"flight", "stopping", "hotel"}));
  EXPECT_EQ(effects("in a call"), (texts{"flight", "hotel"}));
  EXPECT_EQ(bank_of("in a call"), texts{"charge"});
  EXPECT_GE(log.count("stopped_saga_owner_ended"), 1U);
}

INSTANTIATE_TEST_SUITE_P(databases, crashing_sagas, both_databases, database_name);

}  // namespace
}  // namespace settle::test
