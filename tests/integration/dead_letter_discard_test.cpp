// Discarding dead letters: the row and the reason stay, and what waits behind the letter runs; on both
// databases.
#include <gtest/gtest.h>

#include <algorithm>

#include "dead_letter/shared.hpp"
#include "support/expect_error.hpp"
#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::code_of;

struct dead_letter_discards : test::failing_consumer {
  static consumer_options blocking() {
    auto options = plain();
    options.on_exhausted = on_exhausted::block_key;
    return options;
  }

  // "a1" of the key a is given up for good; a2 and a3 wait behind it, b1 does not.
  void give_up_the_first_of_a_key() {
    refusing["a1"] = failure_class::permanent;
    for (const auto* id : {"a1", "a2", "b1", "a3"}) deliver(id, std::string(1, id[0]));
    const auto worker = make_consumer(blocking());
    drain_for(*worker, 2s);
    worker->leave();
    broker.messages.clear();
  }

  void consume_what_is_due() {
    const auto worker = make_consumer(blocking());
    drain_for(*worker, 2s);
    worker->leave();
  }

  dead_letter letter() { return dead_letters(*db).at(0); }
};

// Proves D4
TEST_P(dead_letter_discards, keep_the_row_and_its_reason_and_are_never_replayed) {
  refusing["1"] = failure_class::permanent;
  deliver("1", "1");
  drain(*make_consumer());
  const auto outcome = discard(*db, {.ids = {1}}, "cancelled by hand");
  EXPECT_EQ(outcome.matching, 1);
  EXPECT_EQ(outcome.discarded, 1);
  EXPECT_EQ(letter().status, dead_letter_status::discarded);
  EXPECT_EQ(letter().discard_reason, "cancelled by hand");
  EXPECT_EQ(letter().discarded_at, time.now());
  EXPECT_EQ(letter().what.payload, "payload of 1");
  EXPECT_EQ(letter().error, "1 is refused");
  EXPECT_EQ(replay(*db, {.ids = {1}}).counts.matching, 0);
  EXPECT_EQ(discard(*db, {}, "again").matching, 0) << "the reason that was given first stays";
  EXPECT_EQ(letter().discard_reason, "cancelled by hand");
}

// Proves C8, D4
TEST_P(dead_letter_discards, let_the_messages_run_that_waited_for_them_in_their_order) {
  give_up_the_first_of_a_key();
  EXPECT_EQ(effects(), names{"b1"});
  EXPECT_EQ(count("parked_messages"), 2);
  ASSERT_TRUE(letter().blocks_key);
  consume_what_is_due();
  EXPECT_EQ(effects(), names{"b1"}) << "the key waits for an operator, however long that takes";
  EXPECT_EQ(discard(*db, {}, "never to be done").discarded, 1);
  consume_what_is_due();
  EXPECT_EQ(effects(), (names{"b1", "a2", "a3"}));
  deliver("a4", "a");
  consume_what_is_due();
  EXPECT_EQ(effects(), (names{"b1", "a2", "a3", "a4"}));
  EXPECT_EQ(count("parked_messages") + count("parked_keys"), 0);
}

TEST_P(dead_letter_discards, free_a_key_that_nothing_waits_for_yet) {
  refusing["a1"] = failure_class::permanent;
  deliver("a1", "a");
  drain(*make_consumer(blocking()));
  EXPECT_EQ(count("parked_keys"), 1);
  discard(*db, {}, "never to be done");
  EXPECT_EQ(count("parked_keys"), 0);
  deliver("a2", "a");
  consume_what_is_due();
  EXPECT_EQ(effects(), names{"a2"});
}

TEST_P(dead_letter_discards, of_a_replay_that_never_ran_turn_its_copies_into_nothing) {
  refusing["1"] = failure_class::permanent;
  deliver("1", "1");
  drain(*make_consumer());
  refusing.clear();
  const auto copy = replay_message(1);
  EXPECT_EQ(discard(*db, {}, "too late").matching, 0) << "it is not NEW";
  EXPECT_EQ(discard(*db, {.status = dead_letter_status::replaying}, "too late").discarded, 1);
  broker.messages = {copy};
  drain(*make_consumer());
  EXPECT_EQ(effects(), names{});
  EXPECT_EQ(letter().status, dead_letter_status::discarded);
}

TEST_P(dead_letter_discards, come_in_many_transactions_and_find_every_letter_once) {
  for (int i = 0; i < 250; ++i) {
    const auto id = std::to_string(i);
    refusing[id] = failure_class::permanent;
    deliver(id, id);
  }
  drain(*make_consumer());
  std::vector<std::int64_t> steps;
  const auto outcome = discard(*db, {}, "all of them", {},
                               [&](const discard_outcome& so_far) { steps.push_back(so_far.discarded); });
  EXPECT_EQ(outcome.discarded, 250);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{100, 200, 250}));
}

TEST_P(dead_letter_discards, are_refused_without_a_reason_and_for_what_has_ended) {
  EXPECT_EQ(code_of([&] { discard(*db, {}, ""); }), errc::invalid_name);
  EXPECT_EQ(code_of([&] { discard(*db, {}, std::string(1001, 'x')); }), errc::invalid_name);
  EXPECT_EQ(code_of([&] { discard(*db, {.status = dead_letter_status::replayed}, "x"); }),
            errc::invalid_argument);
}

// Who runs a replay holds its letter; whoever discards it neither waits nor takes it away.
TEST_P(dead_letter_discards, leave_a_letter_alone_that_runs_at_this_moment) {
  if (GetParam() == dialect::sqlite)
    GTEST_SKIP() << "one writer: whoever discards waits for the one who runs it";
  refusing["a1"] = failure_class::permanent;
  deliver("a1", "a");
  drain(*make_consumer(blocking()));
  const auto copy = replay_message(1);
  auto running = db->begin();
  ASSERT_TRUE(take_replay(running, copy));
  const auto outcome = discard(*db, {.status = dead_letter_status::replaying}, "too late");
  EXPECT_EQ(outcome.matching, 1);
  EXPECT_EQ(outcome.discarded, 0);
  running.commit();
  EXPECT_EQ(letter().status, dead_letter_status::replayed);
}

// Proves C8, D4, V3
TEST_P(dead_letter_discards, lose_and_double_nothing_at_any_fault_point) {
  const auto explored = testing::explore({
      .prepare =
          [&] {
            open();
            auto tx = db->begin();
            for (const auto* name :
                 {"processed_events", "processed_batches", "consumer_fences", "settled_logs",
                  "parked_messages", "parked_keys", "dlq_events", "outbox"})
              tx.execute("delete from " + table(name));
            tx.execute("delete from things_done");
            tx.commit();
            give_up_the_first_of_a_key();
            db.reset();  // with its threads: a fork takes none along
          },
      .run =
          [&](fault_points& faults) {
            const environment env{.time = &time, .log = &log, .counters = &counters, .faults = &faults};
            const auto opened = GetParam() == dialect::postgres
                                    ? postgres::open(own->conninfo(), {.env = env})
                                    : sqlite::open(dir.file("service.db"), {.env = env});
            discard(*opened, {}, "never to be done");
          },
      .recover =
          [&] {
            open();
            // The server may still hold the rows of a session that was killed.
            while (letter().status != dead_letter_status::discarded) discard(*db, {}, "never to be done");
            consume_what_is_due();
          },
      .check =
          [&](const std::string& where) {
            EXPECT_EQ(count("dlq_events"), 1) << where;
            EXPECT_EQ(letter().discard_reason, "never to be done") << where;
            EXPECT_EQ(effects(), (names{"b1", "a2", "a3"})) << where;
            EXPECT_EQ(count("parked_messages") + count("parked_keys"), 0) << where;
          },
  });
  EXPECT_EQ(std::ranges::count(explored.points, "dead_letter.discard.before"), 1);
  EXPECT_EQ(std::ranges::count(explored.points, "dead_letter.discard.after"), 1);
}

INSTANTIATE_TEST_SUITE_P(databases, dead_letter_discards,
                         ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
