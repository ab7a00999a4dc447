// Commands to participants over a broker, on both databases: replies, refusals, silence, undo, crashes.
#include <algorithm>
#include <variant>

#include "settle/error.hpp"
#include "settle/on_command.hpp"
#include "settle/relay.hpp"
#include "settle/saga.hpp"
#include "settle/sqlite.hpp"
#include "support/expect_error.hpp"
#include "support/memory_queue_server.hpp"
#include "support/saga_world.hpp"

namespace settle::test {

template <int number>
struct note_event {
  std::string trip, text = {};
};
using reserve_room = note_event<1>;
using room_reserved = note_event<2>;
using no_room = note_event<3>;
using release_room = note_event<4>;
using tell_guest = note_event<5>;

constexpr std::string_view note_names[] = {"",          "room.reserve", "room.reserved",
                                           "room.none", "room.release", "guest.tell"};

}  // namespace settle::test

template <int number>
struct settle::codec<settle::test::note_event<number>> {
  using note = test::note_event<number>;
  static constexpr std::string_view topic = number == 2 || number == 3 ? "replies" : "rooms";
  static constexpr std::string_view type = test::note_names[number];
  static std::string key(const note& n) { return n.trip; }
  static std::string encode(const note& n) { return n.trip + "|" + n.text; }
  static note decode(std::string_view bytes) {
    const auto bar = bytes.find('|');
    return {std::string(bytes.substr(0, bar)), std::string(bytes.substr(bar + 1))};
  }
};

namespace settle::test {
namespace {

const auto flight = booking("flight");
const auto car = booking("car");
const auto room =
    command<reserve_room, room_reserved>("room", [](const trip& t) { return reserve_room{t.id, t.plan}; })
        .within(1min)
        .refused<no_room>([](const no_room& n) { return n.text; })
        .undo<release_room>([](const trip& t, const std::optional<room_reserved>& reserved) {
          return release_room{t.id, reserved ? reserved->text : "unknown"};
        });
const auto room_for_good = command<reserve_room, room_reserved>("room_for_good", [](const trip& t) {
                             return reserve_room{t.id, t.plan};
                           }).within(1min);
const auto tell = command<tell_guest>("tell", [](const trip& t) { return tell_guest{t.id, "booked"}; });

flow<std::string> book_room(saga& s, const trip& t) {
  co_await s.run(flight, t);
  const auto reserved = co_await s.run(room, t);
  co_await s.run(tell, t);
  co_await s.run(car, t);
  co_return reserved.text;
}
const saga_type room_trip("room_trip", 1, book_room, {flight, room, tell, car});

flow<std::string> try_room(saga& s, const trip& t) {
  const auto reserved = co_await s.attempt(room, t);
  co_await s.run(car, t);
  co_return reserved ? reserved.value().text : reserved.why();
}
const saga_type try_trip("try_trip", 1, try_room, {room, car});
const auto list_trip = saga_of<trip>("list_trip", 1, flight, room_for_good, car);

struct sagas_with_commands : saga_tests {
  void SetUp() override {
    saga_tests::SetUp();
    if (IsSkipped()) return;
    if (on_postgres())
      run("truncate settle.parked_messages, settle.parked_keys, settle.processed_events, "
          "settle.processed_batches, settle.settled_logs, settle.dedup_horizons, settle.consumer_fences");
    home = server.open({.time = &time, .log = &log, .counters = &counters});
    server.declare("trips.sagas", {"replies"});
    server.declare("hotel", {"rooms"});
    restart();
  }
  void restart() {
    host.reset();
    host.emplace(*db, *home, options());
    host->add(room_trip).add(try_trip).add(list_trip);
    hotel.reset();
    hotel.emplace(*db, *home, consumer_options{.name = "hotel"});
    serve(*hotel);
  }
  // The other side: in this test in the same database, for one clock and one set of tables.
  static void serve(consumer& at) {
    on_command<reserve_room>(
        at, [](const reserve_room& c, transaction& tx) -> std::variant<room_reserved, no_room> {
          if (c.text.find("full") != std::string::npos) return no_room{c.trip, "it is full"};
          note(tx, c.trip, "room reserved");
          return room_reserved{c.trip, "room 7"};
        });
    on_command<release_room>(
        at, [](const release_room& c, transaction& tx) { note(tx, c.trip, "released " + c.text); });
    on_command<tell_guest>(at,
                           [](const tell_guest& c, transaction& tx) { note(tx, c.trip, "told " + c.text); });
  }
  void relay_all() {
    relay sending(*db, home->publishing());
    while (sending.run_once()) {
    }
    sending.leave();
  }
  void run_all(bool hotel_is_open = true) {
    for (int i = 0; i < 6; ++i) {
      drain(*host);
      relay_all();
      while (hotel_is_open && hotel->run_once()) {
      }
      relay_all();
      time.advance(200ms);
    }
  }
  void pass(duration time_passes, bool hotel_is_open = true) {
    for (duration passed{}; passed < time_passes; passed += 10s) {
      time.advance(10s);
      run_all(hotel_is_open);
    }
  }
  template <class Type>
  saga_id start(const Type& type, const trip& t) {
    return host->start(type, t.id, t);
  }

  memory_queue_server server{10'000h};
  std::unique_ptr<broker> home;
  std::optional<saga_host> host;
  std::optional<consumer> hotel;
};

// Proves S3, S6
TEST_P(sagas_with_commands, wait_for_the_reply_and_go_on_with_it) {
  const auto id = start(room_trip, {"t1"});
  run_all();
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "room reserved", "car", "told booked"}));
  EXPECT_NE(cell("context", id).find("room 7"), std::string::npos) << cell("context", id);
  EXPECT_EQ(number("select count(*) from " + table("saga_waits")), 0);
}

// Proves S3
TEST_P(sagas_with_commands, send_what_carries_the_saga_and_its_cause) {
  auto tx = db->begin();
  tx.set_cause({"order 7", "click", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", ""});
  const auto id = host->start(tx, room_trip, "t1", trip{"t1"});
  tx.commit();
  drain(*host);
  const auto sent = published();
  ASSERT_EQ(sent.size(), 1U);
  const auto& command = sent[0];
  EXPECT_EQ(command.type, "room.reserve");
  EXPECT_EQ(command.extensions.at("correlationid"), "order 7");
  EXPECT_EQ(command.extensions.at("causationid"), id.text());
  EXPECT_EQ(command.extensions.at("traceparent"), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_EQ(command.extensions.at("settlesaga"), id.text());
  EXPECT_EQ(command.extensions.at("settlestep"), "room");
  EXPECT_EQ(command.extensions.at("settleop"), "do");
}

// Proves S2
TEST_P(sagas_with_commands, are_undone_when_the_participant_says_no) {
  const auto id = start(room_trip, {"t1", "full"});
  run_all();
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "undo flight of t1"}))
      << "nothing was reserved, so nothing released";
  EXPECT_EQ(cell("last_error", id), "the step room was refused: it is full");
  const auto other = start(try_trip, {"t2", "full"});
  run_all();
  EXPECT_EQ(status(other), "COMPLETED");
  EXPECT_NE(cell("context", other).find("car of t2"), std::string::npos);
}

// Proves S2
TEST_P(sagas_with_commands, undo_with_another_command_that_arrives_behind) {
  const auto id = start(room_trip, {"t1", "car:refuse"});
  run_all();
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("t1").back(), "released room 7");
}

// Proves S2, S7
TEST_P(sagas_with_commands, that_nobody_answers_in_time_undo_what_may_come_to_be_done) {
  const auto id = start(room_trip, {"t1"});
  run_all(false);
  EXPECT_EQ(status(id), "RUNNING");
  pass(2min, false);
  EXPECT_EQ(status(id), "COMPENSATED");
  run_all();  // now it opens, and finds both
  EXPECT_EQ(effects("t1"), (texts{"flight", "undo flight of t1", "room reserved", "released unknown"}));
  EXPECT_EQ(counters.value("settle_saga_replies_unexpected_total", {{"host", "trips"}}), 1);
}

// Proves S2
TEST_P(sagas_with_commands, that_nobody_answers_and_that_cannot_be_undone_are_held_until_the_reply_comes) {
  const auto id = start(list_trip, {"t1"});
  run_all(false);
  pass(2min, false);
  EXPECT_EQ(status(id), "HELD");
  EXPECT_NE(cell("last_error", id).find("may or may not have been done"), std::string::npos);
  run_all();
  EXPECT_EQ(status(id), "HELD") << "a person decides";
  EXPECT_TRUE(order_saga(*db, id, saga_order::retry, {.who = "ann", .reason = "they are back"}));
  run_all();
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "room reserved", "car"}));
  EXPECT_EQ(number("select count(*) from " + table("saga_waits")), 0);
}

// Proves S2
TEST_P(sagas_with_commands, that_are_held_may_be_answered_by_an_operator) {
  const auto id = start(list_trip, {"t1"});
  run_all(false);
  pass(2min, false);
  EXPECT_EQ(status(id), "HELD");
  EXPECT_TRUE(order_saga(*db, id, saga_order::mark_done,
                         {.who = "ann", .reason = "by telephone", .result = "t1|room 8"}));
  run_all(false);
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(number("select count(*) from " + table("saga_waits")), 0);
}

// Proves S2
TEST_P(sagas_with_commands, that_are_aborted_wait_for_what_is_under_way) {
  const auto id = start(room_trip, {"t1"});
  run_all(false);
  EXPECT_TRUE(order_saga(*db, id, saga_order::abort, {.who = "ann", .reason = "no"}));
  drain(*host);
  EXPECT_EQ(status(id), "COMPENSATING");
  run_all();
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "room reserved", "undo flight of t1", "released room 7"}));
}

// Proves S7
TEST_P(sagas_with_commands, whose_undo_arrives_first_leave_nothing_done) {
  const auto at_first = start(room_trip, {"t1"});
  run_all(false);
  pass(2min, false);
  EXPECT_EQ(status(at_first), "COMPENSATED");
  // Brokers without order of keys may do this.
  auto tx = db->begin();
  const auto undo = participate(tx, {at_first, "room", saga_op::undo});
  tx.commit();
  EXPECT_EQ(undo.how(), participation::empty);
  run_all();
  EXPECT_EQ(effects("t1"), (texts{"flight", "undo flight of t1"}));
}

// Proves S3
TEST_P(sagas_with_commands, leave_memory_and_take_replies_that_came_meanwhile) {
  const auto id = start(room_trip, {"t1"});
  run_all(false);
  host.reset();
  relay_all();
  while (hotel->run_once()) {
  }
  relay_all();
  time.advance(2min);  // the reply came in time, and nobody was there
  restart();
  run_all();
  EXPECT_EQ(status(id), "COMPLETED");
}

TEST_P(sagas_with_commands, need_a_broker_and_a_reply_that_is_nothing_else) {
  saga_host without(*db, options());
  EXPECT_EQ(code_of([&] { without.add(room_trip); }), errc::invalid_argument);
  saga_host both(*db, *home, options());
  both.on<room_reserved>([](const room_reserved& r) { return r.trip; });
  EXPECT_EQ(code_of([&] { both.add(room_trip); }), errc::invalid_argument);
}

// Proves S2, S4
TEST_P(sagas_with_commands, lose_and_double_nothing_at_any_fault_point) {
  std::string round;  // another pair of trips each time: what was sent for one of them stays at the broker
  int rounds = 0;
  const auto serve_all = [&](fault_points* faults) {
    const auto own = open(faults);
    saga_host crashing(*own, *home, options());
    crashing.add(room_trip);
    crashing.start(room_trip, "good" + round, trip{"good" + round});
    crashing.start(room_trip, "bad" + round, trip{"bad" + round, "car:refuse"});
    for (int i = 0; i < 8; ++i) {
      drain(crashing);
      relay_all();
      while (hotel->run_once()) {
      }
      relay_all();
      time.advance(1s);
    }
  };
  host.reset();
  const auto explored = testing::explore({
      .prepare = [&] { round = std::to_string(++rounds); },
      .run = [&](fault_points& faults) { serve_all(&faults); },
      .recover =
          [&] {
            server.break_sessions("trips.sagas");
            time.advance(11s);
            serve_all(nullptr);
          },
      .check =
          [&](const std::string& where) {
            auto good = effects("good" + round), bad = effects("bad" + round);
            std::ranges::sort(good);
            std::ranges::sort(bad);
            EXPECT_EQ(good, (texts{"car", "flight", "room reserved", "told booked"})) << where;
            EXPECT_EQ(bad, (texts{"flight", "released room 7", "room reserved", "told booked",
                                  "undo flight of bad" + round}))
                << where;
            EXPECT_EQ(rows("select status from " + table("sagas") + " where entity_id in ('good" + round +
                           "', 'bad" + round + "') order by status"),
                      (texts{"COMPENSATED", "COMPLETED"}))
                << where;
          },
  });
  for (const auto* point : {"saga.tick.before", "saga.tick.after"})
    EXPECT_TRUE(std::ranges::count(explored.points, point)) << point;
}

INSTANTIATE_TEST_SUITE_P(databases, sagas_with_commands, both_databases, database_name);

}  // namespace
}  // namespace settle::test
