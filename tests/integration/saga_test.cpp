// Sagas of local steps on both databases: order, undo, retries, holding, starting.
#include "settle/saga.hpp"

#include <atomic>
#include <map>
#include <thread>

#include "settle/error.hpp"
#include "support/expect_error.hpp"
#include "support/saga_world.hpp"

namespace settle::test {
namespace {

const auto flight = booking("flight");
const auto hotel = booking("hotel");
const auto car = booking("car");
const auto book_trip = saga_of<trip>("book_trip", 1, flight, hotel, car);

struct sagas_of_local_steps : saga_tests {
  void SetUp() override {
    saga_tests::SetUp();
    if (IsSkipped()) return;
    host.emplace(*db, options());
    host->add(book_trip);
  }
  saga_id start(const trip& t) { return host->start(book_trip, t.id, t); }
  saga_id run(const trip& t) {
    const auto id = start(t);
    drain(*host);
    return id;
  }
  // With all the pauses that it makes.
  void drain_for(duration time_passes, duration at_once = 500ms) {
    for (duration passed{}; passed < time_passes; passed += at_once) {
      drain(*host);
      time.advance(at_once);
    }
    drain(*host);
  }

  std::optional<saga_host> host;
};

// Proves S1
TEST_P(sagas_of_local_steps, run_one_after_the_other_and_show_their_results) {
  const auto id = run({"t1"});
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "car"}));
  EXPECT_EQ(cell("saga_type", id), "book_trip");
  EXPECT_EQ(cell("entity_id", id), "t1");
  EXPECT_EQ(cell("current_step", id), "car");
  const auto context = cell("context", id);
  for (const auto* part : {"\"flight\"", "\"hotel of t1\"", "\"car of t1\""})
    EXPECT_NE(context.find(part), std::string::npos) << context;
  EXPECT_EQ(host->counts().completed, 1);
  EXPECT_EQ(host->counts().steps, 3);
}

// Proves S2
TEST_P(sagas_of_local_steps, that_are_refused_undo_what_was_done_backwards) {
  const auto id = run({"t1", "car:refuse"});
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "undo hotel of t1", "undo flight of t1"}));
  EXPECT_EQ(cell("last_error", id), "the step car was refused: no car for t1");
}

// Proves S2
TEST_P(sagas_of_local_steps, of_which_nothing_ran_have_failed) {
  const auto id = run({"t1", "flight:refuse"});
  EXPECT_EQ(status(id), "FAILED");
  EXPECT_EQ(effects("t1"), texts{});
}

// Proves S2
TEST_P(sagas_of_local_steps, that_fail_for_unknown_reasons_are_tried_again_and_then_undone) {
  const auto id = start({"t1", "hotel:fail"});
  drain(*host);
  EXPECT_EQ(status(id), "RUNNING");
  EXPECT_EQ(cell("attempts", id), "1");
  EXPECT_EQ(effects("t1"), texts{"flight"}) << "what a failed step has written is gone";
  drain_for(10s);
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "undo flight of t1"}));
}

// Proves S2
TEST_P(sagas_of_local_steps, whose_undo_fails_are_held_with_one_alert_until_somebody_decides) {
  const auto id = start({"held trip", "car:refuse undo_hotel:fail"});
  drain_for(20min, 15s);
  EXPECT_EQ(status(id), "HELD");
  EXPECT_EQ(effects("held trip"), (texts{"flight", "hotel"}))
      << "nothing is undone before what came after it";
  EXPECT_EQ(log.count("saga_held"), 1);
  EXPECT_EQ(number("select count(*) from " + table("outbox_events") +
                   " where event_type = 'saga.held' and aggregate_id = '" + id.text() + "'"),
            1);
  const auto ticks = host->counts().ticks;
  drain_for(1min, 10s);
  EXPECT_EQ(host->counts().ticks, ticks) << "what is held costs nothing";

  EXPECT_TRUE(order_saga(*db, id, saga_order::retry, {.who = "ann", .reason = "try again"}));
  drain_for(20min, 15s);
  EXPECT_EQ(status(id), "HELD");
  EXPECT_TRUE(order_saga(*db, id, saga_order::skip, {.who = "ann", .reason = "by telephone"}));
  drain(*host);
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("held trip"), (texts{"flight", "hotel", "undo flight of held trip"}));
  EXPECT_FALSE(order_saga(*db, id, saga_order::retry, {.who = "ann", .reason = "again"})) << "it has ended";
}

// Proves S2
TEST_P(sagas_of_local_steps, whose_step_fails_in_the_database_are_undone_and_others_go_on) {
  saga_tests::run("delete from bank");
  const auto clash =
      local("clash", [](transaction& tx, const trip& t) {
        tx.execute("insert into bank (call_key, saga, what) values ('same', $1, 'clash')", {t.id});
      }).retry({.attempts_max = 1});
  const auto clashing = saga_of<trip>("clashing", 1, flight, clash);
  host->add(clashing);
  std::map<std::string, int> ends;
  std::vector<saga_id> all;
  for (const auto* id : {"t1", "t2", "t3"}) all.push_back(host->start(clashing, id, trip{id}));
  drain(*host);
  for (const auto& id : all) ++ends[status(id)];
  EXPECT_EQ(ends, (std::map<std::string, int>{{"COMPLETED", 1}, {"COMPENSATED", 2}}));
  EXPECT_EQ(number("select count(*) from trip_effects where what like 'undo %'"), 2);
}

// Proves S1
TEST_P(sagas_of_local_steps, may_be_started_by_many_who_are_all_the_first) {
  for (int round = 0; round < 10; ++round) {
    saga_tests::run("delete from " + table("saga_kinds"));
    std::atomic<int> failed = 0;
    {
      std::vector<std::jthread> starters;
      for (int i = 0; i < 8; ++i)
        starters.emplace_back([&, id = "t" + std::to_string(round * 8 + i)] {
          try {
            saga_host(*db, options()).start(book_trip, id, trip{id});
          } catch (const std::exception& e) {
            ++failed;
            ADD_FAILURE() << e.what();
          }
        });
    }
    ASSERT_EQ(failed, 0);
  }
}

// Proves S2
TEST_P(sagas_of_local_steps, that_are_held_keep_their_reason_when_an_order_does_not_fit) {
  const auto id = start({"t1", "car:refuse undo_hotel:fail"});
  drain_for(20min, 15s);
  EXPECT_EQ(cell("last_error", id), "the undo of hotel has failed: cannot undo hotel");
  EXPECT_TRUE(order_saga(*db, id, saga_order::mark_done, {.who = "ann", .reason = "by mistake"}));
  drain(*host);
  EXPECT_EQ(status(id), "HELD");
  EXPECT_EQ(cell("last_error", id), "the undo of hotel has failed: cannot undo hotel");
}

// Proves S1
TEST_P(sagas_of_local_steps, start_once_and_only_if_the_transaction_commits) {
  {
    auto tx = db->begin();
    host->start(tx, book_trip, "t1", trip{"t1"});
  }
  drain(*host);
  EXPECT_EQ(number("select count(*) from " + table("saga_instances")), 0);
  auto tx = db->begin();
  const auto id = host->start(tx, book_trip, "t1", trip{"t1"});
  EXPECT_EQ(host->start(tx, book_trip, "t1", trip{"t1"}), id);
  tx.commit();
  EXPECT_EQ(start({"t1"}), id);
  drain(*host);
  EXPECT_EQ(start({"t1"}), id) << "also when it has ended";
  drain(*host);
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "car"}));
  EXPECT_THROW(start({"t1", "other"}), saga_mismatch);
}

// Proves S1
TEST_P(sagas_of_local_steps, start_many_at_once_and_each_of_them_once) {
  const auto before = start({"t2"});
  const std::vector<new_saga<trip>> four{{"t1", {"t1"}}, {"t2", {"t2"}}, {"t3", {"t3"}}, {"t1", {"t1"}}};
  const auto ids = in_transaction([&](transaction& tx) { return host->start_all(tx, book_trip, four); });
  drain(*host);
  EXPECT_EQ(ids.at(1), before);
  EXPECT_EQ(ids.at(3), ids.at(0));
  EXPECT_EQ(host->counts().completed, 3);
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "car"}));
  const std::vector<new_saga<trip>> other{{"t4", {"t4"}}, {"t1", {"t1", "other"}}};
  EXPECT_THROW(in_transaction([&](transaction& tx) { return host->start_all(tx, book_trip, other); }),
               saga_mismatch);
  EXPECT_EQ(number("select count(*) from " + table("saga_instances")), 3) << "all of them or none";
}

// Proves S1
TEST_P(sagas_of_local_steps, share_transactions_and_do_not_suffer_from_each_other) {
  for (int i = 0; i < 40; ++i) {
    const auto id = "t" + std::to_string(i);
    start({id, i % 10 == 3 ? "hotel:fail" : i % 10 == 6 ? "car:refuse" : ""});
  }
  drain(*host);
  EXPECT_LE(host->counts().ticks, 8);
  EXPECT_EQ(host->counts().completed, 32);
  EXPECT_EQ(host->counts().compensated, 4);
  drain_for(10s);
  EXPECT_EQ(host->counts().compensated, 8);
  EXPECT_EQ(number("select count(*) from trip_effects where what in ('flight', 'hotel', 'car')"),
            40 + 36 + 32);
  EXPECT_EQ(number("select count(*) from trip_effects where what like 'undo %'"), 4 * 2 + 4);
}

// Proves S2
TEST_P(sagas_of_local_steps, with_a_deadline_are_undone_when_it_has_passed) {
  const auto id = host->start(book_trip, "t1", trip{"t1", "hotel:fail"}, {.deadline = time.now() + 300ms});
  drain_for(1s, 100ms);
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(cell("last_error", id), "its deadline has passed");
}

// Proves S1
TEST_P(sagas_of_local_steps, that_have_ended_are_kept_for_thirty_days) {
  run({"t1"});
  time.advance(29 * 24h);
  drain(*host);
  EXPECT_EQ(number("select count(*) from " + table("saga_instances")), 1);
  time.advance(2 * 24h);
  drain(*host);
  EXPECT_EQ(number("select count(*) from " + table("saga_instances")), 0);
  EXPECT_EQ(number("select count(*) from " + table("saga_journal")), 0);
}

// Proves S1
TEST_P(sagas_of_local_steps, run_the_same_when_a_body_sees_only_what_is_committed) {
  auto slow = options();
  slow.steps_max = 0;
  host.emplace(*db, slow);
  host->add(book_trip);
  const auto good = run({"t1"}), bad = run({"t2", "car:refuse"});
  EXPECT_EQ(status(good), "COMPLETED");
  EXPECT_EQ(status(bad), "COMPENSATED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "car"}));
  EXPECT_EQ(effects("t2"), (texts{"flight", "hotel", "undo hotel of t2", "undo flight of t2"}));
}

// Proves S4
TEST_P(sagas_of_local_steps, of_a_host_that_has_left_go_on_in_the_next_one) {
  const auto id = start({"t1", "hotel:fail"});
  drain(*host);
  host->leave();
  const auto good = start({"t2"});
  saga_host other(*db, options());
  other.add(book_trip);
  drain(other);
  EXPECT_EQ(status(good), "COMPLETED");
  for (int i = 0; i < 20; ++i) {
    time.advance(500ms);
    drain(other);
  }
  EXPECT_EQ(status(id), "COMPENSATED");
}

// A definition that cannot work is refused when it is made.
TEST(saga_definitions, are_checked_when_they_are_made) {
  const auto ask = remote("ask", [](call&, const trip&) {});
  EXPECT_EQ(code_of([&] { saga_of<trip>("x", 1, ask); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { saga_of<trip>("x", 1, ask.on_unknown(unknown::ask)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { saga_of<trip>("x", 1, ask.on_unknown(unknown::hold)); }), std::nullopt);
  EXPECT_EQ(code_of([&] { saga_of<trip>("x", 1, flight, flight); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { local("a/b", [](transaction&, const trip&) {}); }), errc::invalid_name);
}

INSTANTIATE_TEST_SUITE_P(databases, sagas_of_local_steps, both_databases, database_name);

}  // namespace
}  // namespace settle::test
