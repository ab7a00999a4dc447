// Handlers that fail before they have asked their transaction for anything, or before it was sent, on both
// databases.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <utility>

#include "settle/publish.hpp"
#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

constexpr const char* insert_effect = "insert into things_done (what) values ($1)";

struct refusals : test::failing_consumer {};

// Proves C1, C3, D1
TEST_P(refusals, a_handler_that_refuses_before_it_asks_the_database_costs_its_neighbours_nothing) {
  for (const auto* id : {"1", "2", "3", "4", "5"}) deliver(id, id);
  refusing = {{"1", failure_class::permanent}, {"4", failure_class::poison}};
  auto c = make_consumer();
  c->run_once();
  EXPECT_EQ(calls, (names{"1", "2", "3", "4", "5"})) << "nobody runs a second time";
  EXPECT_EQ(effects(), (names{"2", "3", "5"}));
  EXPECT_EQ(c->counts().failures, 2);
  ASSERT_EQ(dead_letters(*db).size(), 1u);
  EXPECT_EQ(dead_letters(*db)[0].what.id, "1");
  EXPECT_EQ(dead_letters(*db)[0].attempts, 1);
  refusing.clear();
  time.advance(100ms);
  drain(*c);
  EXPECT_EQ(effects(), (names{"2", "3", "5", "4"}));
  EXPECT_EQ(broker.acknowledged.size(), 5u);
}

// Proves C1, C3
TEST_P(refusals, what_a_handler_has_only_posted_is_taken_back_without_its_neighbours) {
  for (const auto* id : {"1", "2", "3", "4", "5"}) deliver(id, id);
  failing = {{"1", failure_class::permanent}, {"4", failure_class::poison}};
  consumer c(*db, broker, plain());
  c.on("things", "thing.done", [&](const message& m, transaction& tx) {
    calls.push_back(m.id);
    tx.post(query{"test.effect", insert_effect, insert_effect}, {m.id});
    publish(tx, {.topic = "more", .type = "thing.seen", .key = m.key});
    if (const auto found = failing.find(m.id); found != failing.end())
      throw handler_failed(found->second, m.id + " does not work");
  });
  c.run_once();
  if (GetParam() == dialect::postgres) {
    EXPECT_EQ(calls, (names{"1", "2", "3", "4", "5"})) << "nobody runs a second time";
  }
  EXPECT_EQ(effects(), (names{"2", "3", "5"}));
  failing.clear();
  time.advance(100ms);
  drain(c);
  EXPECT_EQ(effects(), (names{"2", "3", "5", "4"}));
  EXPECT_EQ(c.counts().failures, 2);
  ASSERT_EQ(dead_letters(*db).size(), 1u);
  EXPECT_EQ(dead_letters(*db)[0].what.id, "1");
  EXPECT_EQ(number("select count(*) from " + table("outbox_events") + " where topic = 'more'"), 4);
}

// Proves C8
TEST_P(refusals, later_ones_of_a_refused_messages_key_wait_behind_it) {
  for (const auto* id : {"1", "2", "3"}) deliver(id, "a");
  deliver("4", "b");
  refusing["2"] = failure_class::poison;
  auto c = make_consumer();
  drain(*c);
  EXPECT_EQ(effects(), (names{"1", "4"}));
  refusing.clear();
  time.advance(100ms);
  drain(*c);
  EXPECT_EQ(effects(), (names{"1", "4", "2", "3"}));
}

// Proves C3, C8
TEST_P(refusals, a_refused_message_that_is_given_up_holds_its_key_only_where_that_is_asked_for) {
  for (const auto policy : {on_exhausted::continue_key, on_exhausted::block_key}) {
    const std::string round = policy == on_exhausted::block_key ? "blocked-" : "free-";
    for (const auto* id : {"1", "2"}) deliver(round + id, round);
    refusing[round + "1"] = failure_class::permanent;
    auto options = plain();
    options.on_exhausted = policy;
    auto c = make_consumer(options);
    drain(*c);
  }
  EXPECT_EQ(effects(), names{"free-2"});
  EXPECT_EQ(dead_letters(*db).size(), 2u);
  EXPECT_EQ(count("parked_messages"), 1);
}

// The batch rolls back all the same, for another one. Proves C1, C3
TEST_P(refusals, a_refusal_is_charged_once_however_its_batch_ends) {
  for (const auto* id : {"1", "2", "3", "4"}) deliver(id, id);
  refusing["2"] = failure_class::poison;
  failing["4"] = failure_class::poison;
  auto c = make_consumer();
  drain(*c);
  EXPECT_EQ(std::ranges::count(calls, "2"), 1);
  EXPECT_EQ(effects(), (names{"1", "3"}));
  EXPECT_EQ(c->counts().failures, 2);
  EXPECT_EQ(count("parked_messages"), 2);
  EXPECT_EQ(number("select max(attempts) from " + table("parked_messages")), 1);
}

// Proves C1, C3
TEST_P(refusals, a_handler_that_has_only_read_is_tried_alone_before_it_is_charged) {
  for (const auto* id : {"1", "2"}) deliver(id, id);
  consumer c(*db, broker, plain());
  c.on("things", "thing.done", [&](const message& m, transaction& tx) {
    const auto before = tx.execute("select count(*) from things_done")[0][0].integer();
    if (m.id == "2" && before > 0 &&
        db->read().execute("select count(*) from things_done")[0][0].integer() == 0)
      throw std::runtime_error("it minds what its neighbour has not committed yet");
    tx.execute("insert into things_done (what) values ($1)", {m.id});
  });
  drain(c);
  EXPECT_EQ(effects(), (names{"1", "2"}));
  EXPECT_EQ(c.counts().failures, 0);
}

// Its connection to the database is not the only one: what it read beside its transaction is the state
// without its neighbours. Proves C1, C3
TEST_P(refusals, a_handler_that_has_read_beside_its_transaction_is_tried_alone_before_it_is_charged) {
  for (const auto* id : {"1", "2"}) deliver(id, id);
  consumer c(*db, broker, plain());
  c.on("things", "thing.done", [&](const message& m, transaction& tx) {
    if (m.id == "2" && db->read().execute("select count(*) from things_done")[0][0].integer() == 0)
      throw handler_failed(failure_class::permanent, "there is no order 1");
    tx.execute(insert_effect, {m.id});
  });
  drain(c);
  EXPECT_EQ(effects(), (names{"1", "2"}));
  EXPECT_EQ(c.counts().failures, 0);
  EXPECT_EQ(dead_letters(*db).size(), 0u);
}

// On PostgreSQL the statement of the first fails when the dead letter of the second is written. Proves C1, C3
TEST_P(refusals, a_posted_statement_that_fails_beside_a_dead_letter_charges_its_own_message) {
  {
    auto tx = db->begin();
    tx.execute("create table limited (what text not null check (what <> '1'))");
    tx.commit();
  }
  for (const auto* id : {"1", "2", "3"}) deliver(id, id);
  consumer c(*db, broker, plain());
  constexpr const char* insert = "insert into limited (what) values ($1)";
  c.on("things", "thing.done", [&](const message& m, transaction& tx) {
    if (m.id == "2") throw handler_failed(failure_class::permanent, "two is refused");
    tx.post(query{"test.limited", insert, insert}, {m.id});
    tx.post(query{"test.effect", insert_effect, insert_effect}, {m.id});
  });
  drain(c);
  EXPECT_EQ(effects(), names{"3"});
  ASSERT_EQ(dead_letters(*db).size(), 1u);
  EXPECT_EQ(dead_letters(*db)[0].what.id, "2");
  EXPECT_EQ(count("parked_messages"), 1);
  EXPECT_EQ(c.counts().failures, 2);
  EXPECT_EQ(broker.acknowledged.size(), 3u);
}

// The batch is halved, since nobody knows who of its end has failed. Proves C1, C8
TEST_P(refusals, an_earlier_one_of_a_refused_messages_key_comes_first_however_its_batch_ends) {
  for (const auto& [id, key] : {std::pair{"1", "x"}, {"2", "y"}, {"3", "z"}, {"4", "a"}, {"5", "a"}})
    deliver(id, key);
  for (auto& m : broker.messages) m.topic = "others";
  for (const auto* id : {"6", "7"}) deliver(id, id);
  bool refuses = true;
  bool spoils = true;
  consumer c(*db, broker, plain());
  c.on("others", "thing.done", [&](const message& m, transaction& tx) {
    if (m.id == "5" && refuses) throw handler_failed(failure_class::poison, "not this time");
    tx.execute(insert_effect, {m.id});
  });
  c.on_batch("things", "thing.done", [&](std::span<const message* const>, transaction&) {
    if (std::exchange(spoils, false)) throw std::runtime_error("one of them, whoever it is");
  });
  drain(c);
  EXPECT_EQ(effects(), (names{"1", "2", "3", "4"}));
  EXPECT_EQ(count("parked_messages"), 1);
  refuses = false;
  time.advance(100ms);
  drain(c);
  EXPECT_EQ(effects(), (names{"1", "2", "3", "4", "5"}));
}

INSTANTIATE_TEST_SUITE_P(databases, refusals, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
