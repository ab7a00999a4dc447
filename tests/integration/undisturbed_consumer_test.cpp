// What is wrong with one message, or with another process, holds up nobody else.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "settle/error.hpp"
#include "settle/service.hpp"
#include "support/expect_error.hpp"
#include "support/failing_consumer.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using names = std::vector<std::string>;

std::string name_of(const ::testing::TestParamInfo<dialect>& of) {
  return of.param == dialect::sqlite ? "sqlite" : "postgres";
}

using undisturbed_consumer = test::failing_consumer;
INSTANTIATE_TEST_SUITE_P(databases, undisturbed_consumer,
                         ::testing::Values(dialect::sqlite, dialect::postgres), name_of);

// Proves C3: m1 alone says that something is away, and m2 shows that it is not
TEST_P(undisturbed_consumer, by_an_outage_of_one_key_goes_on_with_what_comes_later) {
  deliver("1", "a");
  failing["1"] = failure_class::outage;
  auto c = make_consumer();
  drain(*c);
  ASSERT_TRUE(effects().empty());
  deliver("2", "b");
  drain_for(*c, 5s);
  EXPECT_EQ(effects(), names{"2"});
  EXPECT_EQ(count("parked_messages"), 1);
  EXPECT_TRUE(dead_letters(*db).empty());
}

// Proves C3, D1
TEST_P(undisturbed_consumer, by_an_id_that_no_index_can_hold_gives_it_up_and_goes_on) {
  std::string id;
  for (int i = 0; id.size() < 4000; ++i) id += std::to_string(random.next());
  deliver("1", "a");
  deliver(id, "b");
  deliver("3", "c");
  broker.messages[2].key = id;
  deliver("4", "d");
  auto c = make_consumer();
  drain(*c);
  EXPECT_EQ(effects(), (names{"1", "4"}));
  const auto letters = dead_letters(*db);
  ASSERT_EQ(letters.size(), 2u);
  EXPECT_EQ(letters[0].what.id, id.substr(0, 1024));
  EXPECT_EQ(letters[0].reason, dead_letter_reason::permanent);
  EXPECT_NE(letters[0].error.find("1,024 bytes"), std::string::npos) << letters[0].error;
}

// On PostgreSQL: SQLite has one writer. The other process is a second pool.
struct beside_others : test::failing_consumer {
  std::unique_ptr<consumer> another(test::list_broker& from, consumer::raw_handler handler,
                                    const consumer_options& options = plain()) {
    const environment env{.time = &time, .random = &random, .log = &log, .counters = &counters};
    others_db = postgres::open(own->conninfo(), {.env = env, .busy_timeout = 300ms});
    auto made = std::make_unique<consumer>(*others_db, from, options);
    made->on("things", "thing.done", std::move(handler));
    return made;
  }
  static void write(const message& m, transaction& tx) {
    tx.execute("insert into things_done (what) values ($1)", {m.id});
  }
  void park(const names& ids, const std::string& key) {
    for (const auto& id : ids) deliver(id, key);
    failing[ids[0]] = failure_class::poison;
    auto c = make_consumer();
    drain(*c);
    failing.clear();
    broker.messages.clear();
    ASSERT_EQ(count("parked_messages"), std::ssize(ids));
    time.advance(1s);
  }

  std::unique_ptr<database> others_db;
  test::list_broker others_broker;
};
INSTANTIATE_TEST_SUITE_P(databases, beside_others, ::testing::Values(dialect::postgres), name_of);

// Proves C6, C8: one process removes old records and is then busy with its handlers
TEST_P(beside_others, that_are_in_their_handlers_a_consumer_with_records_to_remove_does_not_wait) {
  auto options = plain();
  options.dedup_keep = 1h;
  broker.log = others_broker.log = "things/0";
  for (int i = 0; i < 3; ++i) deliver("old " + std::to_string(i), "a");
  auto first = make_consumer(options);
  drain(*first);
  first.reset();
  time.advance(3h);
  message m;
  m.id = "elsewhere";
  m.topic = "things";
  m.type = "thing.done";
  others_broker.messages = {m};
  auto other = another(others_broker, write, options);
  broker.messages.clear();
  broker.acknowledged = others_broker.acknowledged = {0, 1, 2};
  deliver("here", "b");
  consumer busy(*db, broker, options);
  busy.on("things", "thing.done", [&](const message& of, transaction& tx) {
    write(of, tx);
    EXPECT_EQ(test::code_of([&] { other->run_once(); }), std::nullopt);
    EXPECT_EQ(other->counts().applied, 1) << "while this handler runs";
  });
  busy.run_once();
  EXPECT_EQ(busy.counts().applied, 1);
  drain(*other);
  drain(busy);
  EXPECT_EQ(number("select count(*) from settle.processed_events where message_id like 'old%'"), 0);
}

// Proves C8: nobody waits for a key that another process is working on
TEST_P(beside_others, that_have_a_key_in_hand_a_consumer_goes_on_with_other_keys) {
  park({"1"}, "a");
  message late, free;
  late.id = "2";
  late.key = "a";
  free.id = "3";
  free.key = "b";
  late.topic = free.topic = "things";
  late.type = free.type = "thing.done";
  auto after = late;
  after.id = "4";
  others_broker.messages = {late, free, after};
  auto other = another(others_broker, write);
  consumer busy(*db, broker, plain());
  busy.on("things", "thing.done", [&](const message& of, transaction& tx) {
    write(of, tx);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(test::code_of([&] { drain(*other); }), std::nullopt);
      time.advance(200ms);
    }
    EXPECT_EQ(other->counts().applied, 1) << "the message of another key";
  });
  drain(busy);
  EXPECT_EQ(effects(), (names{"1", "3"}));
  drain_for(*other, 2s);
  EXPECT_EQ(effects(), (names{"1", "3", "2", "4"})) << "in the order of their key";
  EXPECT_EQ(other->counts().parked, 0);
}

// Proves C8: also if it never lets the key go
TEST_P(beside_others, that_keep_a_key_for_longer_than_a_handler_may_take_lose_their_session) {
  park({"1"}, "a");
  message late;
  late.id = "2";
  late.key = "a";
  late.topic = "things";
  late.type = "thing.done";
  others_broker.messages = {late};
  auto options = plain();
  options.handler_timeout = 1s;
  options.takeover_wait = 500ms;
  auto other = another(others_broker, write, options);
  auto stopped = db->begin();
  stopped.execute("select 1 from settle.parked_keys where message_key = 'a' for update");
  drain_for(*other, 1s);
  EXPECT_EQ(log.count("stopped_holder_ended"), 0u) << "a handler may take as long";
  while (log.count("stopped_holder_ended") == 0) drain_for(*other, 2s);  // the server's clock decides
  EXPECT_NE(test::code_of([&] { stopped.execute("select 1"); }), std::nullopt);
  drain_for(*other, 10s);
  EXPECT_EQ(effects(), (names{"1", "2"}));
}

// Proves C8: both have the messages of a key in hand; one gives the first up for good
TEST_P(beside_others, that_have_blocked_a_key_it_stays_blocked) {
  auto options = plain();
  options.on_exhausted = on_exhausted::block_key;
  {
    auto c = make_consumer(options);
    for (const auto* id : {"slow", "1", "2"}) {
      deliver(id, id == std::string("slow") ? "a" : "k");
      failing[id] = failure_class::poison;
      drain(*c);
      time.advance(1ms);  // so that the slow one comes first
    }
  }
  failing.clear();
  broker.messages.clear();
  ASSERT_EQ(count("parked_messages"), 3);
  time.advance(1s);
  auto other = another(
      others_broker,
      [](const message& of, transaction& tx) {
        if (of.id == "1") throw handler_failed(failure_class::permanent, "for good");
        write(of, tx);
      },
      options);
  consumer slow(*db, broker, options);
  bool first = true;
  slow.on("things", "thing.done", [&](const message& of, transaction& tx) {
    write(of, tx);
    if (!std::exchange(first, false)) return;
    EXPECT_EQ(of.id, "slow");
    time.advance(6s);
    drain_for(*other, 500ms);  // its first look finds the message that runs here
  });
  drain_for(slow, 30s);
  drain_for(*other, 30s);
  EXPECT_EQ(dead_letters(*db).size(), 1u);
  EXPECT_EQ(effects(), names{"slow"}) << "the second one waits for the operator";
  EXPECT_EQ(number("select count(*) from settle.parked_keys where next_at is null"), 1);
}

// Proves C9: three stops that had to cancel a retry
TEST_P(beside_others, that_were_cancelled_have_not_crashed) {
  park({"1"}, "a");
  for (int stop = 0; stop < 4; ++stop) {
    std::latch running(1);
    auto c = another(broker, [&](const message&, transaction& tx) {
      running.count_down();
      tx.execute("select pg_sleep(60)");
    });
    background loop(*c);
    while (!running.try_wait()) {  // the session of the last one may still have the key for a moment
      time.advance(100ms);
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_FALSE(loop.stop(0ms)) << "it had to be cancelled";
    time.advance(10s);
  }
  EXPECT_TRUE(dead_letters(*db).empty());
  EXPECT_EQ(number("select sum(starts) from settle.parked_messages"), 0);
  EXPECT_EQ(number("select count(*) from settle.consumer_fences where at_work"), 0);
  auto c = make_consumer();
  drain_for(*c, 5s);
  EXPECT_EQ(effects(), names{"1"});
}

}  // namespace
}  // namespace settle
