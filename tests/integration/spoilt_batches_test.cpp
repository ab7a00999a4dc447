// One message of a batch fails after it has written something. On SQLite a consumer that has lately seen that
// keeps its claims, and commits the others in the same transaction; elsewhere it begins again. What becomes
// of them all is the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

struct spoilt_batches : test::failing_consumer {
  bool on_sqlite() const { return GetParam() == dialect::sqlite; }

  // A batch that fails, so that the next one is prepared for it.
  std::unique_ptr<consumer> make_wary_consumer() {
    deliver("first", "");
    deliver("bad", "");
    failing["bad"] = failure_class::permanent;
    auto made = make_consumer();
    drain(*made);
    EXPECT_EQ(dead_letters(*db).size(), 1u);
    EXPECT_EQ(effects(), names{"first"});
    run("delete from things_done");
    calls.clear();
    return made;
  }
  void run(const std::string& sql) {
    auto tx = db->begin();
    tx.execute(sql);
    tx.commit();
  }
};
INSTANTIATE_TEST_SUITE_P(databases, spoilt_batches, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& of) { return of.param == dialect::sqlite ? "sqlite" : "postgres"; });

// Proves C3, D1
TEST_P(spoilt_batches, lose_nothing_and_charge_only_what_fails_alone) {
  auto c = make_wary_consumer();
  for (const std::string id : {"1", "2", "3", "4"}) deliver(id, "key of " + id);
  failing["2"] = failure_class::permanent;
  failing["3"] = failure_class::poison;
  c->run_once();
  if (on_sqlite()) {
    EXPECT_EQ(calls, (names{"1", "2", "1", "3", "1", "4", "2", "3"}));
    EXPECT_EQ(effects(), (names{"1", "4"}));
    EXPECT_EQ(number("select count(*) from settle_processed_events where message_id in ('2', '3')"), 0);
  }
  drain(*c);
  EXPECT_EQ(effects(), (names{"1", "4"}));
  ASSERT_EQ(dead_letters(*db).size(), 2u);
  EXPECT_EQ(dead_letters(*db)[1].what.id, "2");
  EXPECT_EQ(dead_letters(*db)[1].error, "2 does not work");
  EXPECT_EQ(count("parked_messages"), 1);
  EXPECT_EQ(c->counts().failures, 3) << "with the one of the first batch";
  failing.clear();
  drain_for(*c, 5s);
  EXPECT_EQ(effects(), (names{"1", "4", "3"}));
  EXPECT_EQ(count("parked_messages"), 0);
}

// Proves C3: its neighbours were to blame, or chance
TEST_P(spoilt_batches, apply_what_works_after_the_others) {
  names fails_once{"2", "6"};
  consumer c(*db, broker, plain());
  c.on("things", "thing.done", [&](const message& m, transaction& tx) {
    tx.execute("insert into things_done (what) values ($1)", {m.id});
    if (std::erase(fails_once, m.id) > 0) throw std::runtime_error("not now");
  });
  for (const std::string id : {"1", "2", "3"}) deliver(id, "key of " + id);
  drain(c);
  for (const std::string id : {"5", "6", "7"}) deliver(id, "key of " + id);
  drain(c);
  EXPECT_EQ(effects(), (names{"1", "3", "2", "5", "7", "6"}));
  EXPECT_EQ(c.counts().failures, 0);
  EXPECT_EQ(count("parked_messages"), 0);
}

// Proves C8
TEST_P(spoilt_batches, keep_the_order_of_every_key) {
  auto c = make_wary_consumer();
  for (const std::string id : {"a1", "b1", "a2", "c1", "a3", "b2"}) deliver(id, id.substr(0, 1));
  failing["a2"] = failure_class::poison;
  drain(*c);
  EXPECT_EQ(effects(), (names{"a1", "b1", "c1", "b2"}));
  EXPECT_EQ(count("parked_messages"), 2);
  failing.clear();
  drain_for(*c, 5s);
  EXPECT_EQ(effects(), (names{"a1", "b1", "c1", "b2", "a2", "a3"}));
}

// The first of a key works until its batch runs again, and by then the second has failed. Proves O4, C8
TEST_P(spoilt_batches, keep_the_order_when_an_earlier_message_fails_in_the_second_pass) {
  int runs_of_a1 = 0;
  names fails_early{"a2"}, fails_late{"b1", "b2"};  // each once
  consumer c(*db, broker, plain());
  c.on("things", "thing.done", [&](const message& m, transaction& tx) {
    if (std::erase(fails_early, m.id) > 0) throw std::runtime_error("before it asked anything");
    tx.execute("insert into things_done (what) values ($1)", {m.id});
    if (m.id == "a1" && ++runs_of_a1 == 2) throw std::runtime_error("not now");
    if (std::erase(fails_late, m.id) > 0) throw std::runtime_error("not now");
  });
  for (const std::string id : {"c1", "b1"}) deliver(id, id.substr(0, 1));
  drain(c);  // the next batch is prepared for failures
  for (const std::string id : {"a1", "a2", "b2", "c2"}) deliver(id, id.substr(0, 1));
  drain_for(c, 5s);
  auto of_a = effects();
  std::erase_if(of_a, [](const std::string& id) { return !id.starts_with("a"); });
  EXPECT_EQ(of_a, (names{"a1", "a2"}));
  EXPECT_EQ(effects().size(), 6u);
}

// Proves C3
TEST_P(spoilt_batches, with_many_bad_messages_still_apply_the_good_ones_once) {
  auto c = make_wary_consumer();
  names good;
  for (int i = 10; i < 34; ++i) {
    const auto id = std::to_string(i);
    deliver(id, "key of " + id);
    if (i % 3 == 0)
      failing[id] = failure_class::permanent;
    else
      good.push_back(id);
  }
  drain(*c);
  auto all = effects();
  std::ranges::sort(all);
  EXPECT_EQ(all, good);
  EXPECT_EQ(dead_letters(*db).size(), 9u);
  EXPECT_EQ(c->counts().failures, 9);
}

// The second batch is one that is prepared for failures. Proves C1, C3, V3
TEST_P(spoilt_batches, lose_and_double_nothing_at_any_fault_point) {
  for (const std::string id : {"1", "bad 1", "2", "3", "bad 2", "4"}) deliver(id, "key of " + id);
  const auto run_all = [&](fault_points* faults) {
    broker.partition = "things/0";
    const environment env{.time = &time, .log = &log, .counters = &counters, .faults = faults};
    const auto opened = on_sqlite() ? sqlite::open(dir.file("service.db"), {.env = env})
                                    : postgres::open(own->conninfo(), {.env = env});
    auto options = plain();
    options.batch_max = 3;
    consumer c(*opened, broker, options);
    c.on("things", "thing.done", [](const message& m, transaction& tx) {
      tx.execute("insert into things_done (what) values ($1)", {m.id});
      if (m.id.starts_with("bad")) throw handler_failed(failure_class::permanent, "always");
    });
    drain_for(c, 5s);
    c.leave();
  };
  const auto explored = testing::explore({
      .prepare =
          [&] {
            for (const auto* name :
                 {"processed_events", "processed_batches", "consumer_fences", "settled_logs",
                  "parked_messages", "parked_keys", "dlq_events", "outbox"})
              run("delete from " + table(name));
            run("delete from things_done");
            db.reset();  // with its threads: a fork takes none along
          },
      .run = [&](fault_points& faults) { run_all(&faults); },
      .recover = [&] { run_all(nullptr); },
      .check =
          [&](const std::string& where) {
            open();
            auto done = effects();
            std::ranges::sort(done);
            EXPECT_EQ(done, (names{"1", "2", "3", "4"})) << where;
            names given_up;
            for (const auto& one : dead_letters(*db)) given_up.push_back(one.what.id);
            std::ranges::sort(given_up);
            EXPECT_EQ(given_up, (names{"bad 1", "bad 2"})) << where;
          },
  });
  EXPECT_GT(std::ranges::count(explored.points, "consumer.commit.after"), 1);
}

using sqlite_batches = spoilt_batches;
INSTANTIATE_TEST_SUITE_P(databases, sqlite_batches, ::testing::Values(dialect::sqlite),
                         [](const auto&) { return "sqlite"; });

// Proves C3
TEST_P(sqlite_batches, whose_commit_fails_are_split_like_any_other) {
  run("create table parents (id bigint primary key)");
  run("create table children (parent bigint references parents deferrable initially deferred)");
  int failures_left = 2;  // of "2": among the others, and among those that are left of them
  consumer c(*db, broker, plain());
  c.on("things", "thing.done", [&](const message& m, transaction& tx) {
    tx.execute("insert into things_done (what) values ($1)", {m.id});
    if (m.id == "bad") throw handler_failed(failure_class::permanent, "always");
    if (m.id == "orphan") tx.execute("insert into children values (1)");
    if (m.id == "2" && failures_left-- > 0) throw handler_failed(failure_class::permanent, "not now");
  });
  deliver("good", "x");
  deliver("bad", "y");
  drain(c);
  for (const std::string id : {"orphan", "2", "3"}) deliver(id, "key of " + id);
  drain(c);
  EXPECT_EQ(effects(), (names{"good", "3", "2"}));
  EXPECT_EQ(c.counts().failures, 2) << "of bad and of orphan";
  const auto letters = dead_letters(*db);
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0].what.id, "bad");
}

}  // namespace
}  // namespace settle
