// What a consumer does about failures, on both databases.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "settle/error.hpp"
#include "settle/testing.hpp"
#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

struct failures : test::failing_consumer {};

// Proves C3, C8
TEST_P(failures, a_failed_message_is_parked_and_its_key_waits_behind_it) {
  for (const auto& [id, key] : {std::pair{"1", "a"}, {"2", "bad"}, {"3", "b"}, {"4", "bad"}, {"5", "a"}})
    deliver(id, key);
  failing["2"] = failure_class::poison;
  auto c = make_consumer();
  drain(*c);
  EXPECT_EQ(effects(), (names{"1", "3", "5"}));
  EXPECT_EQ(broker.acknowledged.size(), 5u) << "the broker is done with what is parked";
  EXPECT_EQ(c->counts().parked, 2);
  EXPECT_EQ(count("parked_messages"), 2);
  failing.clear();
  drain(*c);
  EXPECT_EQ(effects().size(), 3u) << "it waits for its time";
  time.advance(100ms);
  drain(*c);
  EXPECT_EQ(effects(), (names{"1", "3", "5", "2", "4"}));
  EXPECT_EQ(count("parked_messages"), 0);
  EXPECT_EQ(count("parked_keys"), 0);
}

// Proves C8
TEST_P(failures, what_arrives_later_of_a_parked_key_waits_too_and_comes_in_order) {
  deliver("1", "bad");
  failing["1"] = failure_class::poison;
  auto c = make_consumer();
  drain(*c);
  for (const auto* id : {"2", "3", "4"}) deliver(id, "bad");
  deliver("5", "good");
  drain(*c);
  EXPECT_EQ(effects(), names{"5"});
  failing.clear();
  time.advance(1s);
  drain(*c);
  EXPECT_EQ(effects(), (names{"5", "1", "2", "3", "4"}));
}

// Whether each batch commits at once, or has to be split for a message of its own. Proves C8
TEST_P(failures, what_is_due_is_tried_again_while_there_is_other_work) {
  auto options = plain();
  options.batch_max = 5;
  for (const bool split : {false, true}) {
    const std::string round = split ? "split-" : "whole-";
    auto c = make_consumer(options);
    deliver(round + "bad", round + "bad");
    failing[round + "bad"] = failure_class::poison;
    drain(*c);
    ASSERT_EQ(count("parked_messages"), 1);
    for (int n = 0; n < 100; ++n) {
      deliver(round + std::to_string(n), round + std::to_string(n));
      if (split && n % 5 == 2) failing[round + std::to_string(n)] = failure_class::permanent;
    }
    failing.erase(round + "bad");
    time.advance(1s);
    for (int batch = 0; batch < 4; ++batch) c->run_once();
    const auto done = effects();
    EXPECT_EQ(std::ranges::count(done, round + "bad"), 1) << round;
    EXPECT_EQ(std::ranges::count(done, round + "99"), 0) << round;
    drain(*c);
    EXPECT_EQ(count("parked_messages"), 0);
  }
}

// More keys than are read at once. Proves C8
TEST_P(failures, of_many_parked_keys_each_holds_back_its_own_and_no_other) {
  for (int n = 0; n < 200; ++n) {
    deliver("first-" + std::to_string(n), "bad-" + std::to_string(n));
    failing["first-" + std::to_string(n)] = failure_class::poison;
  }
  auto c = make_consumer();
  drain(*c);
  ASSERT_EQ(count("parked_keys"), 200);
  for (int n = 0; n < 200; ++n) deliver("second-" + std::to_string(n), "bad-" + std::to_string(n));
  deliver("good", "good");
  drain(*c);
  EXPECT_EQ(effects(), names{"good"});
  EXPECT_EQ(c->counts().parked, 400);
}

// Proves C8
TEST_P(failures, what_is_parked_outlives_its_process_and_is_run_by_the_next_one) {
  deliver("1", "bad");
  deliver("2", "bad");
  failing["1"] = failure_class::poison;
  {
    auto c = make_consumer();
    drain(*c);
    c->leave();
  }
  failing.clear();
  broker.messages.clear();
  time.advance(1s);
  auto next = make_consumer();
  drain(*next);
  EXPECT_EQ(effects(), (names{"1", "2"}));
}

// Proves C3
TEST_P(failures, the_pauses_grow_with_the_square_of_the_failures) {
  deliver("1", "a");
  failing["1"] = failure_class::poison;
  auto c = make_consumer();
  drain(*c);
  for (const auto wait : {100ms, 400ms, 900ms}) {
    const auto before = calls.size();
    time.advance(wait - 1ms);
    drain(*c);
    EXPECT_EQ(calls.size(), before) << wait.count();
    time.advance(1ms);
    drain(*c);
    EXPECT_EQ(calls.size(), before + 1) << wait.count();
  }
  EXPECT_EQ(c->counts().failures, 4);
}

// Thirty that fail together: their tries, to the millisecond. Proves C3
TEST_P(failures, the_pauses_are_longer_by_up_to_the_jitter_and_differ_between_messages) {
  constexpr int count = 30;
  for (int i = 0; i < count; ++i) deliver(std::to_string(i), std::to_string(i));
  auto options = plain();
  options.retry_jitter = 0.2;
  std::map<std::string, std::vector<timestamp>> tries;
  consumer c(*db, broker, options);
  c.on("things", "thing.done", [&](const message& m, transaction&) {
    if (auto& of = tries[m.id]; of.empty() || of.back() != time.now()) of.push_back(time.now());
    throw std::runtime_error("no");
  });
  for (int ms = 0; ms <= 1 + 120 + 1 + 480; ++ms) {
    drain(c);
    time.advance(1ms);
  }
  ASSERT_EQ(tries.size(), static_cast<std::size_t>(count));
  for (const auto& [failures, wait] : {std::pair{1u, 100ms}, {2u, 400ms}}) {
    std::set<duration> pauses;
    for (const auto& [id, at] : tries) {
      ASSERT_GT(at.size(), failures) << id;
      const auto pause = at[failures] - at[failures - 1];
      EXPECT_GE(pause, wait) << id;
      EXPECT_LE(pause, wait + wait / 5 + 1ms) << id << ": time goes by in milliseconds";
      pauses.insert(pause);
    }
    EXPECT_GT(pauses.size(), 8u) << "they would all come at once";
  }
}

// Proves C3, D1
TEST_P(failures, a_message_that_fails_five_times_is_a_dead_letter_with_everything_known_about_it) {
  deliver("1", "a");
  deliver("2", "a");
  failing["1"] = failure_class::poison;
  broker.partition = "things/3";
  auto c = make_consumer();
  drain_for(*c, 10s);
  EXPECT_EQ(calls, (names{"1", "1", "1", "1", "1", "1", "2"}))
      << "once with its neighbours, five times alone, and then its key goes on";
  EXPECT_EQ(effects(), names{"2"});
  const auto letters = dead_letters(*db);
  ASSERT_EQ(letters.size(), 1u);
  const auto& one = letters[0];
  EXPECT_EQ(one.consumer, "tester");
  EXPECT_EQ(one.consumer_version, "1.2.3");
  EXPECT_EQ(one.reason, dead_letter_reason::exhausted);
  EXPECT_EQ(one.error, "1 does not work");
  EXPECT_EQ(one.attempts, 5);
  ASSERT_EQ(one.history.size(), 5u);
  EXPECT_LT(one.history[0].at, one.history[4].at);
  EXPECT_EQ(one.what.payload, "payload of 1");
  EXPECT_EQ(one.what.extensions.at("traceparent"), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_EQ(one.log, "things/3");
  EXPECT_EQ(one.position, "0");
  const auto told = db->read().execute("select topic, event_type from " + table("outbox"));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0][0].text(), "things.dlq");
  EXPECT_EQ(told[0][1].text(), "thing.done");
  EXPECT_EQ(count("parked_messages"), 0);
  EXPECT_EQ(count("parked_keys"), 0);
}

// Proves C3
TEST_P(failures, a_permanent_failure_is_a_dead_letter_at_once) {
  for (const auto* id : {"1", "2", "3"}) deliver(id, id);
  failing["2"] = failure_class::permanent;
  auto c = make_consumer();
  drain(*c);
  EXPECT_EQ(effects(), (names{"1", "3"}));
  EXPECT_EQ(c->counts().dead_letters, 1);
  EXPECT_EQ(c->counts().parked, 0);
  ASSERT_EQ(dead_letters(*db).size(), 1u);
  EXPECT_EQ(dead_letters(*db)[0].reason, dead_letter_reason::permanent);
  EXPECT_EQ(broker.acknowledged.size(), 3u);
}

// Proves C3, C8
TEST_P(failures, after_a_permanent_failure_its_key_goes_on_at_once) {
  for (const auto* id : {"1", "2", "3"}) deliver(id, "a");
  failing["1"] = failure_class::permanent;
  auto c = make_consumer();
  drain(*c);
  EXPECT_EQ(effects(), (names{"2", "3"}));
  EXPECT_EQ(count("parked_messages"), 0);
}

// Proves C3
TEST_P(failures, a_message_that_no_database_can_hold_is_a_dead_letter) {
  deliver(std::string("no\xff text"), "a");
  deliver(std::string("with\0zero", 9), "b");
  deliver("3", std::string("key\xc3"));
  deliver("4", "d");
  broker.messages[3].extensions["odd"] = "\xfe";
  failing["4"] = failure_class::permanent;
  deliver("5", "e");
  auto c = make_consumer();
  drain(*c);
  EXPECT_EQ(effects(), names{"5"});
  EXPECT_EQ(dead_letters(*db).size(), 4u);
  EXPECT_EQ(broker.acknowledged.size(), 5u);
}

// Proves C3
TEST_P(failures, a_transient_failure_is_tried_again_until_it_is_too_old) {
  deliver("1", "a");
  failing["1"] = failure_class::transient;
  auto options = plain();
  options.transient_max_age = 1min;
  auto c = make_consumer(options);
  drain_for(*c, 50s);
  EXPECT_GT(calls.size(), 5u) << "more than attempts_max";
  EXPECT_EQ(c->counts().dead_letters, 0);
  drain_for(*c, 40s);
  ASSERT_EQ(dead_letters(*db).size(), 1u);
  EXPECT_EQ(dead_letters(*db)[0].reason, dead_letter_reason::too_old);
}

// Proves C3
TEST_P(failures, are_classed_by_the_users_own_rule_first) {
  deliver("1", "a");
  failing["1"] = failure_class::poison;
  auto options = plain();
  options.classify = [](const std::exception& e, const message& m) -> std::optional<failure_class> {
    EXPECT_EQ(m.id, "1");
    return std::string_view(e.what()).find("does not work") != std::string_view::npos
               ? std::optional(failure_class::permanent)
               : std::nullopt;
  };
  auto c = make_consumer(options);
  drain(*c);
  EXPECT_EQ(c->counts().dead_letters, 1);
}

// Proves C3
TEST_P(failures, a_value_that_its_column_refuses_is_permanent) {
  if (GetParam() == dialect::sqlite) GTEST_SKIP() << "SQLite's columns refuse nothing";
  deliver("1", "a");
  consumer c(*db, broker, plain());
  c.on("things", "thing.done", [](const message&, transaction& tx) { tx.execute("select 'x'::integer"); });
  drain(c);
  ASSERT_EQ(dead_letters(*db).size(), 1u);
  EXPECT_EQ(dead_letters(*db)[0].reason, dead_letter_reason::permanent);
}

// A mistake of the handler's, which must not cost the process. Proves C3
TEST_P(failures, a_handler_that_reads_a_row_that_is_not_there_has_failed_as_poison) {
  deliver("1", "a");
  consumer c(*db, broker, plain());
  c.on("things", "thing.done", [this](const message& m, transaction& tx) {
    calls.push_back(m.id);
    tx.execute("select what from things_done where what = $1", {m.id})[0][0].text();
  });
  drain_for(c, 10s);
  EXPECT_EQ(calls.size(), 5u);
  ASSERT_EQ(dead_letters(*db).size(), 1u);
  EXPECT_EQ(dead_letters(*db)[0].reason, dead_letter_reason::exhausted);
  const auto why = dead_letters(*db)[0].error;
  EXPECT_NE(why.find("'select what from things_done where what = $1' returned no row"), std::string::npos)
      << why;
}

// Proves C3
TEST_P(failures, a_rule_of_the_users_that_throws_has_said_nothing) {
  deliver("1", "a");
  deliver("2", "b");
  failing["1"] = failure_class::permanent;
  auto options = plain();
  options.classify = [](const std::exception&, const message&) -> std::optional<failure_class> {
    throw std::runtime_error("no rule");
  };
  auto c = make_consumer(options);
  drain(*c);
  EXPECT_EQ(effects(), names{"2"});
  EXPECT_EQ(c->counts().dead_letters, 1);
  EXPECT_GT(log.count("classify_failed"), 0u);
}

// A rolling upgrade: the new version parks what the old one has never heard of. Proves C8
TEST_P(failures, what_is_parked_waits_for_a_process_that_has_a_handler_for_it) {
  const auto deliver_new = [&](const std::string& id) {
    deliver(id, "a");
    broker.messages.back().type = "thing.invented";
  };
  deliver_new("1");
  deliver("2", "a");
  deliver_new("3");
  bool ready = false;
  const auto make_new = [&] {
    auto made = make_consumer();
    made->on("things", "thing.invented", [&](const message& m, transaction& tx) {
      tx.execute("insert into things_done (what) values ($1)", {m.id});
      if (!ready) throw std::runtime_error("not yet");
    });
    return made;
  };
  auto newer = make_new();
  drain(*newer);
  ASSERT_EQ(count("parked_messages"), 3);
  ready = true;
  auto older = make_consumer();
  drain_for(*older, 2min);
  EXPECT_EQ(effects(), names{});
  EXPECT_EQ(count("parked_messages"), 3);
  EXPECT_EQ(older->counts().applied, 0);
  EXPECT_GT(log.count("parked_without_handler"), 0u);
  for (int turn = 0; turn < 100; ++turn) {  // both at work
    drain(*older);
    drain(*newer);
    time.advance(1s);
  }
  EXPECT_EQ(effects(), (names{"1", "2", "3"}));
  EXPECT_EQ(count("parked_messages") + count("parked_keys"), 0);
}

// Proves C8
TEST_P(failures, a_given_up_message_blocks_its_key_where_that_is_asked_for) {
  for (const auto* id : {"1", "2", "3"}) deliver(id, "a");
  deliver("4", "b");
  failing["1"] = failure_class::permanent;
  auto options = plain();
  options.on_exhausted = on_exhausted::block_key;
  auto c = make_consumer(options);
  drain_for(*c, 5s);
  EXPECT_EQ(effects(), names{"4"});
  ASSERT_EQ(dead_letters(*db).size(), 1u);
  EXPECT_TRUE(dead_letters(*db)[0].blocks_key);
  EXPECT_EQ(count("parked_messages"), 2);
}

// Proves C2
TEST_P(failures, a_message_without_an_id_is_a_dead_letter_and_only_one) {
  deliver("", "a");
  deliver("2", "b");
  {
    auto c = make_consumer();
    drain(*c);
  }
  auto again = make_consumer();  // everything is delivered again
  drain(*again);
  EXPECT_EQ(effects(), names{"2"});
  ASSERT_EQ(dead_letters(*db).size(), 1u);
  EXPECT_EQ(dead_letters(*db)[0].reason, dead_letter_reason::permanent);
}

// Proves C1
TEST_P(failures, a_handler_with_outside_effects_is_never_repeated_because_of_a_neighbour) {
  for (const auto* id : {"1", "2", "3"}) deliver(id, id);
  failing["2"] = failure_class::permanent;
  auto c = make_consumer(plain(), {.effects = handler_effects::outside});
  drain(*c);
  EXPECT_EQ(calls, (names{"1", "2", "3"}));
}

// Proves C1
TEST_P(failures, a_batch_handler_gets_neighbours_together_and_only_the_bad_one_is_charged) {
  for (int i = 0; i < 16; ++i) deliver(std::to_string(i), std::to_string(i));
  std::vector<std::size_t> sizes;
  consumer c(*db, broker, plain());
  c.on_batch("things", "thing.done", [&](std::span<const message* const> all, transaction& tx) {
    sizes.push_back(all.size());
    for (const auto* m : all) {
      tx.execute("insert into things_done (what) values ($1)", {m->id});
      if (m->id == "11") throw handler_failed(failure_class::permanent, "eleven");
    }
  });
  drain(c);
  EXPECT_EQ(sizes[0], 16u);
  EXPECT_LE(sizes.size(), 9u) << "halved, not one by one";
  EXPECT_EQ(effects().size(), 15u);
  EXPECT_EQ(c.counts().dead_letters, 1);
}

// Proves C1, C8
TEST_P(failures, messages_of_one_key_stay_together_when_their_batch_is_halved) {
  for (int i = 0; i < 8; ++i) deliver(std::to_string(i), "a");
  std::vector<std::size_t> sizes;
  consumer c(*db, broker, plain());
  c.on_batch("things", "thing.done", [&](std::span<const message* const> all, transaction& tx) {
    sizes.push_back(all.size());
    for (const auto* m : all) tx.execute("insert into things_done (what) values ($1)", {m->id});
    if (sizes.size() == 1) throw std::runtime_error("this once");
  });
  drain(c);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{8, 4, 4}));
  EXPECT_EQ(effects(), (names{"0", "1", "2", "3", "4", "5", "6", "7"}));
}

// Proves C1
TEST_P(failures, a_handler_that_takes_too_long_is_stopped_and_charged) {
  deliver("1", "a");
  deliver("2", "b");
  auto options = plain();
  options.handler_timeout = 200ms;
  consumer c(*db, broker, options);
  c.on("things", "thing.done", [&](const message& m, transaction& tx) {
    tx.execute("insert into things_done (what) values ($1)", {m.id});
    if (m.id == "1")
      tx.execute(GetParam() == dialect::postgres
                     ? "select pg_sleep(60)"
                     : "with recursive forever(n) as (select 1 union all select n + 1 from forever) select "
                       "max(n) from forever");
  });
  drain(c);
  EXPECT_EQ(effects(), names{"2"});
  EXPECT_EQ(c.counts().failures, 1);
  EXPECT_EQ(count("parked_messages"), 1);
}

// A fence that refuses, or whatever a handler stops by itself, is a failure of its message. Proves C3
TEST_P(failures, a_handler_that_has_lost_a_lock_is_charged_and_the_others_go_on) {
  for (const auto* id : {"1", "2", "3"}) deliver(id, id);
  consumer c(*db, broker, plain());
  bool lost = true;
  c.on("things", "thing.done", [&](const message& m, transaction& tx) {
    tx.execute("insert into things_done (what) values ($1)", {m.id});
    if (m.id == "1" && lost) throw error(errc::ownership_lost, "somebody else has the lock");
    if (m.id == "2" && lost) throw error(errc::cancelled, "of its own accord");
  });
  drain(c);
  EXPECT_EQ(effects(), names{"3"});
  EXPECT_EQ(c.counts().failures, 2);
  lost = false;
  time.advance(100ms);
  drain(c);
  EXPECT_EQ(effects(), (names{"3", "1", "2"}));
  EXPECT_EQ(dead_letters(*db).size(), 0u);
}

// Ids that differ only in what no database can hold. Proves C2, C3
TEST_P(failures, messages_that_no_database_can_hold_are_not_taken_for_copies) {
  deliver(
      "\xff"
      "1",
      "a");
  deliver(
      "\xfe"
      "1",
      "b");
  auto c = make_consumer();
  drain(*c);
  auto again = make_consumer();  // everything is delivered again
  drain(*again);
  EXPECT_EQ(dead_letters(*db).size(), 2u);
}

// Longer than an announcement is good for. Proves C8
TEST_P(failures, what_is_due_is_tried_again_while_slow_handlers_have_other_work) {
  auto options = plain();
  options.batch_max = 1;
  consumer c(*db, broker, options);
  deliver("bad", "bad");
  bool works = false;
  c.on("things", "thing.done", [&](const message& m, transaction& tx) {
    if (m.id == "bad" && !works) throw std::runtime_error("not yet");
    if (m.id != "bad") time.advance(3s);
    tx.execute("insert into things_done (what) values ($1)", {m.id});
  });
  drain(c);
  ASSERT_EQ(count("parked_messages"), 1);
  works = true;
  for (int n = 0; n < 20; ++n) deliver(std::to_string(n), std::to_string(n));
  for (int batch = 0; batch < 6; ++batch) c.run_once();
  const auto done = effects();
  EXPECT_EQ(std::ranges::count(done, "bad"), 1);
  EXPECT_EQ(std::ranges::count(done, "19"), 0) << "there is other work";
}

// Proves C3
TEST_P(failures, many_failing_messages_cost_as_many_retries_and_no_others) {
  for (int i = 0; i < 200; ++i) {
    deliver(std::to_string(i), std::to_string(i));
    if (i % 2 == 0) failing[std::to_string(i)] = failure_class::poison;
  }
  auto c = make_consumer();
  drain_for(*c, 20s);
  EXPECT_EQ(effects().size(), 100u);
  EXPECT_EQ(c->counts().dead_letters, 100);
  EXPECT_EQ(c->counts().failures, 500);
  EXPECT_EQ(counters.value("settle_consumer_retries_total", {{"consumer", "tester"}}), 400);
  EXPECT_EQ(count("parked_keys"), 0);
}

// Proves C8
TEST_P(failures, a_clock_that_is_set_back_does_not_put_off_what_is_parked) {
  deliver("1", "a");
  failing["1"] = failure_class::poison;
  time.advance(24h * 365);
  auto c = make_consumer();
  drain(*c);
  failing.clear();
  time.advance(-24h * 365);
  drain_for(*c, 2s);
  EXPECT_EQ(effects(), names{"1"});
}

INSTANTIATE_TEST_SUITE_P(databases, failures, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

}  // namespace
}  // namespace settle
