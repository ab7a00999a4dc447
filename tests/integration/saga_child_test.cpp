// Sagas that start others, on both databases: results, failures, undo across both, holding, crashes.
#include <algorithm>

#include "settle/error.hpp"
#include "settle/saga.hpp"
#include "support/saga_world.hpp"

namespace settle::test {

struct key_came {
  std::string trip;
};

}  // namespace settle::test

template <>
struct settle::codec<settle::test::key_came> {
  static constexpr std::string_view topic = "keys";
  static constexpr std::string_view type = "key.came";
  static std::string key(const test::key_came& k) { return k.trip; }
  static std::string encode(const test::key_came& k) { return k.trip; }
  static test::key_came decode(std::string_view bytes) { return {std::string(bytes)}; }
};

namespace settle::test {
namespace {

const auto flight = booking("flight");
const auto hotel = booking("hotel");
const auto car = booking("car");
const auto meal = booking("meal");

flow<std::string> book_room(saga& s, const trip& t) {
  const auto booked = co_await s.run(hotel, t);
  if (t.has("wait_for_key")) co_await s.wait_for<key_came>(t.id);
  co_await s.run(car, t);
  co_return booked + " and car";
}
const saga_type room_saga("room", 1, book_room, {hotel, car});

flow<std::string> book_all(saga& s, const trip& t) {
  co_await s.run(flight, t);
  const auto room = co_await s.child(room_saga, t.id, t);
  co_await s.run(meal, t);
  co_return room;
}
const saga_type whole_saga("whole", 1, book_all, {flight, meal});

flow<std::string> book_perhaps(saga& s, const trip& t) {
  const auto room = co_await s.attempt_child(room_saga, t.id, t);
  co_await s.run(meal, t);
  co_return room ? room.value() : room.why();
}
const saga_type perhaps_saga("perhaps", 1, book_perhaps, {meal});

flow<> room_branch(saga s, const trip& t) { co_await s.child(room_saga, t.id, t); }
flow<> meal_branch(saga s, const trip& t) {
  co_await s.run(flight, t);
  co_await s.sleep(1min);
  co_await s.run(meal, t);
}
flow<> book_beside(saga& s, const trip& t) {
  auto room = room_branch(s.branch(0), t);
  auto rest = meal_branch(s.branch(1), t);
  co_await s.all(room, rest);
}
const saga_type beside_saga("beside", 1, book_beside, {flight, meal});

// A grandchild.
flow<std::string> book_group(saga& s, const trip& t) {
  const auto all = co_await s.child(whole_saga, t.id, t);
  if (t.has("regret")) co_await s.undo("a regret");
  co_return all;
}
const saga_type group_saga("group", 1, book_group, {});

struct sagas_with_children : saga_tests {
  void SetUp() override {
    saga_tests::SetUp();
    if (!IsSkipped()) restart(options());
  }
  void restart(const saga_host_options& with) {
    host.reset();
    host.emplace(*db, with);
    add_all(*host);
  }
  static void add_all(saga_host& to) {
    to.add(room_saga).add(whole_saga).add(perhaps_saga).add(beside_saga).add(group_saga);
    to.on<key_came>([](const key_came& k) { return k.trip; });
  }
  template <class Type>
  saga_id run(const Type& type, const trip& t) {
    const auto id = host->start(type, t.id, t);
    drain(*host);
    return id;
  }
  void pass(duration time_passes, duration at_once = 1s) {
    for (duration passed{}; passed < time_passes; passed += at_once) {
      time.advance(at_once);
      drain(*host);
    }
  }
  void bring_key(const std::string& to) {
    auto tx = db->begin();
    host->deliver(tx, "key of " + to, key_came{to});
    tx.commit();
    drain(*host);
  }
  saga_id child_of(const std::string& entity, const std::string& type = "room") {
    const auto found = rows("select cast(saga_id as text) from " + table("saga_instances") +
                            " where entity_id = '" + entity + "' and saga_type = '" + type + "'");
    return saga_id::parse(found.at(0)).value();
  }

  std::optional<saga_host> host;
};

// Proves S3
TEST_P(sagas_with_children, wait_for_their_end_and_get_their_result) {
  const auto id = run(whole_saga, {"t1"});
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "car", "meal"}));
  EXPECT_NE(cell("context", id).find("hotel of t1 and car"), std::string::npos) << cell("context", id);
  EXPECT_EQ(status(child_of("t1")), "COMPLETED");
}

// Proves S2
TEST_P(sagas_with_children, are_undone_if_a_child_fails) {
  const auto id = run(whole_saga, {"t1", "car:refuse"});
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(status(child_of("t1")), "COMPENSATED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "undo hotel of t1", "undo flight of t1"}));
  EXPECT_EQ(cell("last_error", id),
            "the saga room of t1 has failed: the step car was refused: no car for t1");
}

// Proves S2
TEST_P(sagas_with_children, may_go_another_way_when_a_child_has_failed) {
  const auto id = run(perhaps_saga, {"t1", "hotel:refuse"});
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(status(child_of("t1")), "FAILED");
  EXPECT_EQ(effects("t1"), texts{"meal"});
}

// Proves S2
TEST_P(sagas_with_children, undo_a_child_that_had_completed_before_what_they_did_before_it) {
  const auto id = run(whole_saga, {"t1", "meal:refuse"});
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(status(child_of("t1")), "COMPENSATED");
  EXPECT_EQ(effects("t1"),
            (texts{"flight", "hotel", "car", "undo car of t1", "undo hotel of t1", "undo flight of t1"}));
}

// Proves S2
TEST_P(sagas_with_children, undo_a_child_that_is_still_under_way) {
  const auto id = run(beside_saga, {"t1", "wait_for_key meal:refuse"});
  EXPECT_EQ(status(child_of("t1")), "RUNNING");
  pass(2min, 1min);
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(status(child_of("t1")), "COMPENSATED");
  auto all = effects("t1");
  std::ranges::sort(all);
  EXPECT_EQ(all, (texts{"flight", "hotel", "undo flight of t1", "undo hotel of t1"}));
  EXPECT_EQ(number("select count(*) from " + table("saga_waits")), 0);
}

// Proves S2
TEST_P(sagas_with_children, undo_the_children_of_their_children) {
  const auto id = run(group_saga, {"t1", "regret"});
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "car", "meal", "undo meal of t1", "undo car of t1",
                                  "undo hotel of t1", "undo flight of t1"}));
}

// Proves S2
TEST_P(sagas_with_children, wait_visibly_while_a_child_is_held) {
  const auto id = run(whole_saga, {"t1", "meal:refuse undo_hotel:fail"});
  pass(20min, 15s);
  const auto child = child_of("t1");
  EXPECT_EQ(status(child), "HELD");
  EXPECT_EQ(status(id), "COMPENSATING");
  EXPECT_NE(cell("last_error", id).find("waits for the saga room of t1, which is HELD"), std::string::npos)
      << cell("last_error", id);
  EXPECT_EQ(cell("current_step", id), "room");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "car", "undo car of t1"}));
  const auto ticks = host->counts().ticks;
  pass(1h, 1min);
  EXPECT_EQ(host->counts().ticks, ticks) << "to wait costs nothing";

  EXPECT_TRUE(order_saga(*db, child, saga_order::skip, {.who = "ann", .reason = "by telephone"}));
  drain(*host);
  EXPECT_EQ(status(child), "COMPENSATED");
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("t1").back(), "undo flight of t1");
}

// Proves S2
TEST_P(sagas_with_children, say_so_while_a_child_is_held_on_its_way_forward) {
  const auto id = run(perhaps_saga, {"t1", "wait_for_key"});
  const auto child = child_of("t1");
  EXPECT_TRUE(order_saga(*db, child, saga_order::abort, {.who = "ann", .reason = "no"}));
  drain(*host);
  EXPECT_EQ(status(id), "COMPLETED") << "an operator may end a child";
  EXPECT_EQ(effects("t1"), (texts{"hotel", "undo hotel of t1", "meal"}));
}

// Proves S2
TEST_P(sagas_with_children, that_are_aborted_abort_their_children) {
  const auto id = run(whole_saga, {"t1", "wait_for_key"});
  EXPECT_EQ(status(id), "RUNNING");
  EXPECT_TRUE(order_saga(*db, id, saga_order::abort, {.who = "ann", .reason = "the trip is off"}));
  drain(*host);
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "undo hotel of t1", "undo flight of t1"}));
  EXPECT_NE(cell("last_error", child_of("t1")).find("the trip is off"), std::string::npos);
}

// Proves S3
TEST_P(sagas_with_children, leave_memory_and_find_their_children_again) {
  const auto id = run(whole_saga, {"t1", "wait_for_key"});
  pass(1h, 10min);
  restart(options());
  drain(*host);
  EXPECT_EQ(status(id), "RUNNING");
  bring_key("t1");
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "car", "meal"}));
}

// Proves S3
TEST_P(sagas_with_children, do_the_same_when_a_body_sees_only_what_is_committed) {
  auto slow = options();
  slow.steps_max = 0;
  restart(slow);
  EXPECT_EQ(status(run(group_saga, {"t1", "regret"})), "COMPENSATED");
  EXPECT_EQ(status(run(whole_saga, {"t2"})), "COMPLETED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "car", "meal", "undo meal of t1", "undo car of t1",
                                  "undo hotel of t1", "undo flight of t1"}));
}

// Proves S4
TEST_P(sagas_with_children, share_the_work_with_another_process) {
  saga_host other(*db, options());
  add_all(other);
  constexpr int trips = 32;
  const auto both = [&] {
    for (int turn = 0; turn < 60; ++turn) {
      drain(*host);
      drain(other);
      time.advance(100ms);
    }
  };
  both();
  for (int i = 0; i < trips; ++i) {
    const auto id = "t" + std::to_string(i);
    host->start(whole_saga, id, trip{id, i % 2 == 0 ? "meal:refuse" : ""});
  }
  both();
  EXPECT_GT(host->counts().steps, 0);
  EXPECT_GT(other.counts().steps, 0);
  for (int i = 0; i < trips; ++i) {
    const auto id = "t" + std::to_string(i);
    EXPECT_EQ(effects(id), i % 2 == 0 ? (texts{"flight", "hotel", "car", "undo car of " + id,
                                               "undo hotel of " + id, "undo flight of " + id})
                                      : (texts{"flight", "hotel", "car", "meal"}))
        << id;
  }
}

// Proves S1
TEST_P(sagas_with_children, keep_those_that_have_ended_for_as_long_as_they_may_undo_them) {
  const auto id = run(group_saga, {"t1", "wait_for_key"});
  const auto parent = child_of("t1", "whole");
  bring_key("t1");
  EXPECT_EQ(status(id), "COMPLETED");
  const auto waiting = run(perhaps_saga, {"t2", "wait_for_key"});
  pass(40 * 24h, 24h);
  EXPECT_EQ(status(waiting), "RUNNING");
  EXPECT_EQ(number("select count(*) from " + table("sagas") + " where entity_id = 't1'"), 0) << parent.text();
  EXPECT_EQ(number("select count(*) from " + table("sagas") + " where entity_id = 't2'"), 2);
}

// Proves S1
TEST_P(sagas_with_children, of_a_type_that_their_host_does_not_know_are_held) {
  host.emplace(*db, options());
  host->add(whole_saga);
  const auto id = run(whole_saga, {"t1"});
  EXPECT_EQ(status(id), "HELD");
  EXPECT_NE(cell("last_error", id).find("does not know the saga room"), std::string::npos);
}

// Proves S2, S4
TEST_P(sagas_with_children, lose_and_double_nothing_at_any_fault_point) {
  const auto serve = [&](fault_points* faults) {
    const auto own = open(faults);
    saga_host crashing(*own, options());
    crashing.add(room_saga).add(whole_saga);
    crashing.on<key_came>([](const key_came& k) { return k.trip; });
    crashing.start(whole_saga, "good", trip{"good"});
    crashing.start(whole_saga, "bad", trip{"bad", "meal:refuse"});
    for (int turn = 0; turn < 6; ++turn) {
      drain(crashing);
      time.advance(3s);
    }
  };
  const auto explored = testing::explore({
      .prepare =
          [&] {
            host.reset();
            for (const auto* of : {"sagas", "saga_journal", "saga_waits", "saga_mailbox", "saga_fences"})
              saga_tests::run("delete from " + table(of));
            saga_tests::run("delete from trip_effects");
          },
      .run = [&](fault_points& faults) { serve(&faults); },
      .recover = [&] { serve(nullptr); },
      .check =
          [&](const std::string& where) {
            EXPECT_EQ(effects("good"), (texts{"flight", "hotel", "car", "meal"})) << where;
            EXPECT_EQ(effects("bad"), (texts{"flight", "hotel", "car", "undo car of bad", "undo hotel of bad",
                                             "undo flight of bad"}))
                << where;
            EXPECT_EQ(rows("select entity_id || ' ' || status from " + table("sagas") +
                           " order by entity_id, status"),
                      (texts{"bad COMPENSATED", "bad COMPENSATED", "good COMPLETED", "good COMPLETED"}))
                << where;
          },
  });
  for (const auto* point : {"saga.tick.before", "saga.tick.after", "saga.step.before", "saga.step.after"})
    EXPECT_TRUE(std::ranges::count(explored.points, point)) << point;
}

INSTANTIATE_TEST_SUITE_P(databases, sagas_with_children, both_databases, database_name);

}  // namespace
}  // namespace settle::test
