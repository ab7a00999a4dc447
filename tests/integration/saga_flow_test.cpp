// Bodies of sagas on both databases: results, decisions, sleeps, branches, remote steps, replays.
#include "settle/error.hpp"
#include "settle/saga.hpp"
#include "support/saga_world.hpp"

namespace settle::test {
namespace {

// Somebody else's system: what it was asked, under which keys, and what it says next.
struct other_side {
  struct asked {
    std::string what, key;
    std::int64_t epoch;
  };
  std::vector<asked> calls;
  std::vector<std::string> says;  // one word per call; none: it works

  void take(const std::string& what, const call& c) {
    calls.push_back({what, c.key(), c.epoch()});
    if (says.empty()) return;
    const auto word = says.front();
    says.erase(says.begin());
    if (word == "refuse") throw step_refused("no");
    if (word == "away") throw call_not_made("nobody there");
    if (word == "lost") throw std::runtime_error("no answer");
  }
  texts seen() const {
    texts all;
    for (const auto& one : calls) all.push_back(one.what);
    return all;
  }
} bank;

const auto flight = booking("flight");
const auto hotel = booking("hotel");
const auto car = booking("car");
const auto charge = remote("charge", [](call& c, const trip& t) {
                      bank.take("charge " + t.id, c);
                      return std::int64_t{4200};
                    }).undo([](call& c, const trip& t, const std::optional<std::int64_t>& charged) {
  bank.take("refund " + t.id + " " + (charged ? std::to_string(*charged) : "unknown"), c);
});
const auto pay_out = remote("pay_out", [](call& c, const trip& t) { bank.take("pay_out " + t.id, c); })
                         .on_unknown(unknown::hold)
                         .pivot();
const auto tell =
    remote("tell", [](call& c, const trip& t) { bank.take("tell " + t.id, c); }).on_unknown(unknown::repeat);
finding bank_says = finding::unknown;
const auto transfer = remote("transfer", [](call& c, const trip& t) {
                        bank.take("transfer " + t.id, c);
                        return std::string("T1");
                      }).on_unknown(unknown::ask, [](call& c, const trip& t) {
  bank.take("ask " + t.id, c);
  return found_step<std::string>{bank_says, "T2"};
});

flow<std::string> pay_and_book(saga& s, const trip& t) {
  const auto charged = co_await s.run(charge, t);
  const auto booked = co_await s.attempt(hotel, t);
  if (!booked) co_await s.run(car, t);
  co_await s.run(flight, t);
  co_return std::to_string(charged) + (booked ? " " + booked.value() : " " + booked.why());
}
const saga_type paid_trip("paid_trip", 1, pay_and_book, {charge, hotel, car, flight});

flow<> rest(saga& s, const trip& t) {
  co_await s.run(flight, t);
  co_await s.sleep(120h);
  co_await s.run(hotel, t);
  if (t.has("undo")) co_await s.undo("changed my mind");
}
const saga_type resting_trip("resting_trip", 1, rest, {flight, hotel});

flow<> branch_of(saga s, const trip& t, const std::string& which) {
  co_await s.run(which == "left" ? flight : hotel, t);
  co_await s.run(charge, t);
  co_await s.run(car, t);
}
const std::string left = "left", right = "right";
flow<> fork(saga& s, const trip& t) {
  auto one = branch_of(s.branch(0), t, left);
  auto two = branch_of(s.branch(1), t, right);
  co_await s.all(one, two);
  co_await s.run(flight, t);
}
const saga_type forked_trip("forked_trip", 1, fork, {flight, hotel, car, charge});

flow<> past_the_pivot(saga& s, const trip& t) {
  co_await s.run(flight, t);
  co_await s.run(pay_out, t);
  co_await s.run(tell, t);
  co_await s.run(hotel, t);
}
const saga_type pivoted_trip("pivoted_trip", 1, past_the_pivot, {flight, pay_out, tell, hotel});

flow<> move_money(saga& s, const trip& t) {
  co_await s.run(flight, t);
  const auto moved = co_await s.attempt(transfer, t);
  if (!moved) co_await s.undo("no money: " + moved.why());
}
const saga_type transferred_trip("transferred_trip", 1, move_money, {flight, transfer});

// A body that changes while a saga sleeps in it.
bool swapped = false, versioned = false;
flow<> changing(saga& s, const trip& t) {
  if (swapped) {
    co_await s.run(hotel, t);
    co_await s.run(flight, t);
  } else {
    co_await s.run(flight, t);
    const auto way = versioned ? co_await s.version("cars") : 0;
    if (way == 1) co_await s.run(car, t);
    co_await s.run(hotel, t);
  }
  co_await s.sleep(1h);
}
const saga_type changing_trip("changing_trip", 1, changing, {flight, hotel, car});

int ids_seen = 0;
std::set<std::string> ids;
flow<> throwing(saga& s, const trip& t) {
  const auto id = s.new_id();
  ++ids_seen;
  ids.insert(id.text());
  co_await s.run(flight, t);
  throw std::runtime_error("a bug");
}
const saga_type throwing_trip("throwing_trip", 1, throwing, {flight});

// What saga.now() says before there is an answer.
std::set<timestamp> began, branch_began;
flow<> early_branch(saga s, const trip& t) {
  branch_began.insert(s.now());
  co_await s.run(hotel, t);
}
flow<> clocked(saga& s, const trip& t) {
  began.insert(s.now());
  co_await s.sleep(1h);
  auto only = early_branch(s.branch(0), t);
  co_await s.all(only);
  co_await s.sleep(1h);
}
const saga_type clocked_trip("clocked_trip", 1, clocked, {hotel});

struct sagas_with_bodies : saga_tests {
  void SetUp() override {
    saga_tests::SetUp();
    if (IsSkipped()) return;
    bank = {};
    bank_says = finding::unknown;
    swapped = versioned = false;
    ids_seen = 0;
    ids.clear();
    restart();
  }
  // As another process would find it.
  void restart() {
    host.reset();
    host.emplace(*db, options());
    host->add(paid_trip).add(resting_trip).add(forked_trip).add(pivoted_trip).add(transferred_trip);
    host->add(changing_trip).add(throwing_trip).add(clocked_trip);
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

  std::optional<saga_host> host;
};

// Proves S3, S6
TEST_P(sagas_with_bodies, decide_by_what_steps_return) {
  const auto good = run(paid_trip, {"t1"});
  EXPECT_EQ(status(good), "COMPLETED");
  EXPECT_EQ(effects("t1"), (texts{"hotel", "flight"}));
  const auto other = run(paid_trip, {"t2", "hotel:refuse"});
  EXPECT_EQ(status(other), "COMPLETED");
  EXPECT_EQ(effects("t2"), (texts{"car", "flight"}));
  EXPECT_EQ(bank.seen(), (texts{"charge t1", "charge t2"}));
  EXPECT_NE(cell("context", good).find("4200"), std::string::npos) << cell("context", good);
}

// Proves S2, S6
TEST_P(sagas_with_bodies, undo_remote_steps_with_what_they_returned) {
  const auto id = run(paid_trip, {"t1", "flight:refuse"});
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("t1"), (texts{"hotel", "undo hotel of t1"}));
  EXPECT_EQ(bank.seen(), (texts{"charge t1", "refund t1 4200"}));
  EXPECT_NE(bank.calls[0].key, bank.calls[1].key);
}

// Proves S4, S6
TEST_P(sagas_with_bodies, repeat_a_call_that_was_not_made_or_not_answered_with_the_same_key) {
  bank.says = {"away", "lost"};
  const auto id = run(paid_trip, {"t1"});
  EXPECT_EQ(status(id), "RUNNING");
  pass(10s);
  EXPECT_EQ(status(id), "COMPLETED");
  ASSERT_EQ(bank.calls.size(), 3U);
  EXPECT_EQ(bank.calls[0].key, bank.calls[1].key);
  EXPECT_EQ(bank.calls[0].key, bank.calls[2].key);
}

// Proves S2
TEST_P(sagas_with_bodies, undo_a_remote_step_of_which_nobody_knows_whether_it_was_done) {
  bank.says = {"lost", "refuse"};  // the refusal says nothing about the first attempt
  const auto id = run(paid_trip, {"t1"});
  pass(10s);
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(bank.seen(), (texts{"charge t1", "charge t1", "refund t1 unknown"}));
}

// Proves S2
TEST_P(sagas_with_bodies, do_not_undo_a_remote_step_that_was_certainly_not_done) {
  bank.says = {"refuse"};
  const auto id = run(paid_trip, {"t1"});
  EXPECT_EQ(status(id), "FAILED");
  EXPECT_EQ(bank.seen(), texts{"charge t1"});
}

// Proves S2
TEST_P(sagas_with_bodies, whose_remote_undo_keeps_failing_are_held) {
  bank.says = {"ok", "refuse"};
  const auto id = run(paid_trip, {"t1", "flight:refuse"});
  EXPECT_EQ(status(id), "HELD");
  EXPECT_TRUE(order_saga(*db, id, saga_order::retry, {.who = "ann", .reason = "the bank works again"}));
  drain(*host);
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(bank.seen(), (texts{"charge t1", "refund t1 4200", "refund t1 4200"}));
  EXPECT_EQ(bank.calls[1].key, bank.calls[2].key);
}

// Proves S2
TEST_P(sagas_with_bodies, with_a_step_of_unknown_outcome_and_no_undo_are_held_never_compensated) {
  bank.says = {"lost"};
  const auto id = run(pivoted_trip, {"t1"});
  EXPECT_EQ(status(id), "HELD");
  EXPECT_FALSE(order_saga(*db, saga_id(), saga_order::abort, {.who = "ann", .reason = "no such saga"}));
  EXPECT_TRUE(order_saga(*db, id, saga_order::abort, {.who = "ann", .reason = "stop it"}));
  drain(*host);
  EXPECT_EQ(status(id), "HELD") << "money may have been paid";
  EXPECT_EQ(log.count("saga_order_refused"), 1);
  EXPECT_TRUE(order_saga(*db, id, saga_order::mark_done, {.who = "ann", .reason = "the bank says so"}));
  drain(*host);
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(bank.seen(), (texts{"pay_out t1", "tell t1"})) << "it was not paid again";
}

// Proves S2
TEST_P(sagas_with_bodies, past_the_pivot_only_go_forward) {
  const auto id = run(pivoted_trip, {"t1", "hotel:refuse"});
  EXPECT_EQ(status(id), "HELD");
  EXPECT_EQ(effects("t1"), texts{"flight"}) << "nothing is undone";
  bank.says = {"ok", "refuse"};
  const auto other = run(pivoted_trip, {"t2"});
  EXPECT_EQ(status(other), "HELD");
  EXPECT_TRUE(order_saga(*db, other, saga_order::retry, {.who = "ann", .reason = "mended"}));
  drain(*host);
  EXPECT_EQ(status(other), "COMPLETED");
  EXPECT_EQ(bank.seen(), (texts{"pay_out t1", "tell t1", "pay_out t2", "tell t2", "tell t2"}));
}

// Proves S2
TEST_P(sagas_with_bodies, whose_pivot_is_certainly_refused_are_undone) {
  bank.says = {"refuse"};
  const auto id = run(pivoted_trip, {"t1"});
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "undo flight of t1"}));
}

// Proves S6
TEST_P(sagas_with_bodies, ask_what_became_of_a_call_and_believe_only_a_definite_answer) {
  bank.says = {"lost"};
  bank_says = finding::done;
  const auto found = run(transferred_trip, {"t1"});
  pass(10s);
  EXPECT_EQ(status(found), "COMPLETED");
  EXPECT_NE(cell("context", found).find("T2"), std::string::npos);
  bank.says = {"lost"};
  bank_says = finding::never;
  const auto never = run(transferred_trip, {"t2"});
  pass(10s);
  EXPECT_EQ(status(never), "COMPENSATED");
  EXPECT_EQ(effects("t2"), (texts{"flight", "undo flight of t2"}));
  bank.says = {"lost"};
  bank_says = finding::unknown;
  const auto nobody_knows = run(transferred_trip, {"t3"});
  pass(1min);
  EXPECT_EQ(status(nobody_knows), "HELD");
  EXPECT_EQ(effects("t3"), texts{"flight"});
}

// Proves S3, S4
TEST_P(sagas_with_bodies, sleep_for_days_across_restarts_and_wake_once) {
  const auto id = run(resting_trip, {"t1"});
  EXPECT_EQ(effects("t1"), texts{"flight"});
  pass(119h, 7h);
  restart();
  drain(*host);
  EXPECT_EQ(effects("t1"), texts{"flight"}) << "the time that has passed counts";
  pass(1h, 30min);
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel"}));
  EXPECT_EQ(status(id), "COMPLETED");
}

// Proves S4
TEST_P(sagas_with_bodies, are_told_the_same_time_at_every_replay_also_before_the_first_answer) {
  began.clear();
  branch_began.clear();
  const auto started = time.now();
  run(clocked_trip, {"t1"});
  pass(1h, 10min);
  restart();
  pass(1h, 10min);
  EXPECT_EQ(began, std::set{started});
  EXPECT_EQ(branch_began.size(), 1u);
  EXPECT_GE(*branch_began.begin(), started + 1h);
}

// Proves S2
TEST_P(sagas_with_bodies, undo_themselves_when_they_say_so) {
  const auto id = run(resting_trip, {"t1", "undo"});
  pass(121h, 1h);
  EXPECT_EQ(status(id), "COMPENSATED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "undo hotel of t1", "undo flight of t1"}));
}

// Proves S6
TEST_P(sagas_with_bodies, run_branches_side_by_side_and_undo_them_in_reverse) {
  const auto good = run(forked_trip, {"t1"});
  EXPECT_EQ(status(good), "COMPLETED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel", "car", "car", "flight"}));
  ASSERT_EQ(bank.calls.size(), 2U);
  EXPECT_NE(bank.calls[0].key, bank.calls[1].key) << "the same step of two branches";

  bank = {};
  const auto bad = run(forked_trip, {"t2", "car:refuse"});
  EXPECT_EQ(status(bad), "COMPENSATED");
  EXPECT_EQ(effects("t2"), (texts{"flight", "hotel", "undo hotel of t2", "undo flight of t2"}));
  EXPECT_EQ(bank.seen(), (texts{"charge t2", "charge t2", "refund t2 4200", "refund t2 4200"}));
}

// Proves S4
TEST_P(sagas_with_bodies, that_ask_for_something_else_than_before_are_held_with_the_difference) {
  const auto id = run(changing_trip, {"t1"});
  swapped = true;
  restart();
  pass(1h, 1h);
  EXPECT_EQ(status(id), "HELD");
  EXPECT_EQ(
      cell("last_error", id),
      "the body does not ask for what it asked for before: row 1 of the journal is the step flight, and "
      "the body asks for the step hotel");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel"}));
  swapped = false;
  EXPECT_TRUE(order_saga(*db, id, saga_order::retry, {.who = "ann", .reason = "the old program is back"}));
  drain(*host);
  EXPECT_EQ(status(id), "COMPLETED");
}

// Proves S4
TEST_P(sagas_with_bodies, keep_the_way_that_they_went_when_the_body_learns_another) {
  const auto old = run(changing_trip, {"t1"});
  versioned = true;
  restart();
  const auto fresh = run(changing_trip, {"t2"});
  restart();
  pass(1h, 1h);
  EXPECT_EQ(status(old), "COMPLETED");
  EXPECT_EQ(status(fresh), "COMPLETED");
  EXPECT_EQ(effects("t1"), (texts{"flight", "hotel"}));
  EXPECT_EQ(effects("t2"), (texts{"flight", "car", "hotel"}));
}

// Proves S4
TEST_P(sagas_with_bodies, that_throw_are_replayed_three_times_and_then_held) {
  const auto id = run(throwing_trip, {"t1"});
  pass(1min);
  EXPECT_EQ(status(id), "HELD");
  EXPECT_EQ(effects("t1"), texts{"flight"});
  EXPECT_EQ(ids_seen, 3);
  EXPECT_EQ(ids.size(), 1U) << "an id is the same in every replay";
}

// Proves S6
TEST_P(sagas_with_bodies, make_calls_on_threads_of_their_own) {
  auto with_threads = options();
  with_threads.call_threads = 3;
  saga_host threaded(*db, with_threads);
  threaded.add(paid_trip);
  const auto id = threaded.start(paid_trip, "t1", trip{"t1"});
  {
    background loop(threaded);
    const auto enough = std::chrono::steady_clock::now() + 20s;
    while (status(id) != "COMPLETED" && std::chrono::steady_clock::now() < enough)
      std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(status(id), "COMPLETED");
  EXPECT_EQ(bank.seen(), texts{"charge t1"});
}

INSTANTIATE_TEST_SUITE_P(databases, sagas_with_bodies, both_databases, database_name);

}  // namespace
}  // namespace settle::test
