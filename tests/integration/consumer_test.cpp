// What a consumer promises about its handlers.
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "support/expect_error.hpp"
#include "support/list_broker.hpp"
#include "support/order_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::list_broker;
using test::order_placed;
using test::order_world;
using test::temp_dir;

std::int64_t count(database& db, const char* table) {
  return db.read().execute(std::string("select count(*) from ") + table)[0][0].integer();
}

// A service with one table, and messages handed to its consumer by hand.
struct bench {
  bench() {
    env.time = &time;
    env.log = &log;
    env.counters = &counters;
    db = sqlite::open(dir.file("service.db"), {.env = env});
    migrate(*db);
    auto tx = db->begin();
    tx.execute("create table effects (id integer primary key, what text not null)");
    tx.commit();
  }

  static message make(const std::string& id, const std::string& key, const std::string& payload = "x") {
    message m;
    m.id = id;
    m.topic = "things";
    m.type = "thing.done";
    m.key = key;
    m.payload = payload;
    return m;
  }

  std::unique_ptr<consumer> make_consumer(consumer::raw_handler handler,
                                          consumer_options options = {.name = "tester"}) {
    auto made = std::make_unique<consumer>(*db, broker, options);
    made->on("things", "thing.done", std::move(handler));
    return made;
  }

  static void insert(const message& m, transaction& tx) {
    tx.execute("insert into effects (what) values ($1)", {m.id});
  }

  std::vector<std::string> effects() {
    const auto rows = db->read().execute("select what from effects order by id");
    std::vector<std::string> out;
    for (std::size_t i = 0; i < rows.size(); ++i) out.push_back(rows[i][0].text());
    return out;
  }

  temp_dir dir;
  testing::manual_time time;
  test::quiet_log log;
  metrics counters;
  environment env;
  std::unique_ptr<database> db;
  list_broker broker;
};

using names = std::vector<std::string>;

// Proves D7
TEST(consumer, counts_how_long_its_handlers_took_and_how_old_messages_were_when_they_were_applied) {
  bench b;
  b.broker.messages = {bench::make("1", "a"), bench::make("2", "b"), bench::make("3", "c")};
  b.broker.stored_at = b.time.now();
  auto c = b.make_consumer([&](const message& m, transaction& tx) {
    b.time.advance(2ms);
    bench::insert(m, tx);
  });
  b.time.advance(1s);
  while (c->run_once()) {
  }
  const auto handlers = b.counters.times("settle_consumer_handler_seconds", {{"consumer", "tester"}});
  EXPECT_EQ(handlers.count(), 3);
  EXPECT_EQ(handlers.sum(), 6ms);
  const auto delays = b.counters.times("settle_consumer_apply_delay_seconds", {{"consumer", "tester"}});
  EXPECT_EQ(delays.count(), 3);
  EXPECT_GE(delays.sum(), 3 * 1s);
  EXPECT_LE(delays.sum(), 3 * 1006ms);
}

// Proves D7
TEST(consumer, does_not_say_how_old_messages_were_that_no_broker_gave_a_time) {
  bench b;
  b.broker.messages = {bench::make("1", "a")};
  auto c = b.make_consumer(bench::insert);
  while (c->run_once()) {
  }
  EXPECT_EQ(b.effects(), names{"1"});
  EXPECT_EQ(b.counters.times("settle_consumer_apply_delay_seconds", {{"consumer", "tester"}}).count(), 0);
}

// Proves D7
TEST(consumer, is_told_by_the_embedded_broker_when_a_message_was_stored) {
  bench b;
  const auto broker = sqlite::open_broker(b.dir.file("broker.db"), {.env = b.env});
  auto member = broker->subscribe({"tester", {"things"}});
  broker->publishing().publish(std::vector{bench::make("1", "a")});
  const auto stored = b.time.now();
  b.time.advance(1s);
  const auto found = member->fetch(10).deliveries;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].stored_at, stored);
}

// Proves C1
TEST(consumer, acknowledges_only_after_the_commit) {
  bench b;
  b.broker.messages = {bench::make("1", "a")};
  auto c = b.make_consumer([&](const message& m, transaction& tx) {
    bench::insert(m, tx);
    EXPECT_TRUE(b.broker.acknowledged.empty());
  });
  EXPECT_TRUE(c->run_once());
  EXPECT_FALSE(c->run_once());
  EXPECT_EQ(b.broker.acknowledged, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(b.effects(), names{"1"});
}

// Proves C1
TEST(consumer, under_load_one_acknowledgement_serves_several_batches) {
  bench b;
  for (int i = 0; i < 100; ++i)
    b.broker.messages.push_back(bench::make(std::to_string(i), std::to_string(i)));
  auto c = b.make_consumer(bench::insert, {.name = "tester", .batch_max = 5});
  for (int batch = 0; batch < 15; ++batch) c->run_once();
  EXPECT_EQ(b.broker.acknowledge_calls, 0);
  c->run_once();
  EXPECT_EQ(b.broker.acknowledge_calls, 1);
  EXPECT_EQ(b.broker.acknowledged.size(), 80u);
  c->run_once();
  c->leave();
  EXPECT_EQ(b.broker.acknowledged.size(), 85u) << "leaving acknowledges what is done";
}

// Proves C1
TEST(consumer, a_handler_cannot_commit_or_roll_back) {
  for (const std::string sql :
       {"commit", "/* quietly */ COMMIT", "rollback", "end", "begin", "commit; begin"}) {
    bench b;
    b.broker.messages = {bench::make("1", "a")};
    auto c = b.make_consumer([&](const message& m, transaction& tx) {
      bench::insert(m, tx);
      tx.execute(sql);
    });
    c->run_once();
    EXPECT_EQ(c->counts().failures, 1) << sql;
    EXPECT_TRUE(b.effects().empty()) << sql;
    EXPECT_EQ(count(*b.db, "settle_processed_events"), 0) << sql;
    EXPECT_TRUE(b.broker.acknowledged.empty()) << sql;
    c->run_once();
    EXPECT_EQ(count(*b.db, "settle_parked_messages"), 1) << sql;
  }
}

// What the first handler has done would be undone while its claim stays. Proves C1
TEST(consumer, a_handler_cannot_roll_back_to_the_savepoint_of_an_earlier_one) {
  for (const std::string back : {"rollback to s", "ROLLBACK TRANSACTION TO SAVEPOINT \"S\"", "release s"}) {
    bench b;
    b.broker.messages = {bench::make("1", "a"), bench::make("2", "b"), bench::make("3", "c")};
    bool broken = true;
    auto c = b.make_consumer([&](const message& m, transaction& tx) {
      if (m.id == "1") tx.execute("savepoint s");
      bench::insert(m, tx);
      if (m.id != "2" || !broken) return;
      EXPECT_THROW(tx.execute("savepoint s", {1}), error);  // sets nothing: it has no parameter
      tx.execute(back);
    });
    while (c->run_once()) {
    }
    EXPECT_EQ(b.effects(), (names{"1", "3"})) << back;
    EXPECT_EQ(c->counts().failures, 1) << back;
    broken = false;
    b.time.advance(1s);
    while (c->run_once()) {
    }
    EXPECT_EQ(b.effects(), (names{"1", "3", "2"})) << back;
  }
}

// Proves C1
TEST(consumer, a_savepoint_is_the_handlers_own_business) {
  bench b;
  b.broker.messages = {bench::make("1", "a"), bench::make("2", "b"), bench::make("3", "c")};
  auto c = b.make_consumer([&](const message& m, transaction& tx) {
    bench::insert(m, tx);
    tx.execute("savepoint s");
    tx.execute("insert into effects (what) values ('undone')");
    tx.execute("rollback to S");
    if (m.id == "2") tx.execute("release savepoint s");
  });
  c->run_once();
  EXPECT_EQ(b.effects(), (names{"1", "2", "3"}));
  EXPECT_EQ(c->counts().failures, 0);
}

// A statement that makes the database roll back by itself must not let later writes commit without
// their claims, even if the handler swallows the error. Proves C1
TEST(consumer, nothing_commits_after_the_database_rolled_back_by_itself) {
  bench b;
  b.broker.messages = {bench::make("1", "a")};
  auto c = b.make_consumer([&](const message& m, transaction& tx) {
    tx.execute("insert into effects (id, what) values (1, 'first')");
    try {
      tx.execute("insert or rollback into effects (id, what) values (1, 'again')");
    } catch (const error&) {
    }
    try {
      bench::insert(m, tx);
    } catch (const error&) {
    }
  });
  c->run_once();
  EXPECT_TRUE(b.effects().empty());
  EXPECT_EQ(count(*b.db, "settle_processed_events"), 0);
  EXPECT_EQ(c->counts().failures, 1);
}

// Only the message that fails alone is charged; its neighbours commit in as few transactions as possible.
// Proves C1
TEST(consumer, a_failure_splits_the_batch_and_charges_one_message) {
  bench b;
  for (int i = 0; i < 20; ++i) b.broker.messages.push_back(bench::make(std::to_string(i), std::to_string(i)));
  int calls = 0;
  auto c = b.make_consumer([&](const message& m, transaction& tx) {
    ++calls;
    bench::insert(m, tx);
    if (m.id == "7") throw std::runtime_error("seven");
  });
  EXPECT_TRUE(c->run_once());
  EXPECT_EQ(c->counts().applied, 19);
  EXPECT_EQ(c->counts().failures, 1);
  EXPECT_EQ(calls, 8 + 7 + 1 + 12);  // the batch up to it, the ones before, it alone, the ones after
}

// COMMIT itself can refuse, and does not say whose fault it is. Proves C1
TEST(consumer, a_refused_commit_is_traced_to_its_message) {
  bench b;
  {
    auto tx = b.db->begin();
    tx.execute("create table parents (id integer primary key)");
    tx.execute(
        "create table children (id integer primary key, parent integer references parents deferrable "
        "initially "
        "deferred)");
    tx.commit();
  }
  b.broker.messages = {bench::make("1", "a"), bench::make("2", "b"), bench::make("3", "c")};
  auto c = b.make_consumer([&](const message& m, transaction& tx) {
    bench::insert(m, tx);
    if (m.id == "2") tx.execute("insert into children (parent) values (42)");
  });
  EXPECT_TRUE(c->run_once());
  EXPECT_EQ(b.effects(), (names{"1", "3"}));
  EXPECT_EQ(c->counts().failures, 1);
}

// Proves D7
TEST(consumer, reports_a_dead_letter_only_when_it_has_committed) {
  bench b;
  {
    auto tx = b.db->begin();
    tx.execute("create table parents (id integer primary key)");
    tx.execute(
        "create table children (id integer primary key, parent integer references parents deferrable "
        "initially deferred)");
    tx.commit();
  }
  b.broker.messages = {bench::make("1", "a")};
  auto c = b.make_consumer([&](const message& m, transaction& tx) {
    tx.execute("select count(*) from parents");
    if (m.id == "1") throw handler_failed(failure_class::permanent, "never");
    tx.execute("insert into children (parent) values (42)");
  });
  EXPECT_TRUE(c->run_once());
  EXPECT_EQ(b.log.count("dead_lettered"), 0u);
  b.broker.messages.push_back(
      bench::make("2", "b"));  // its handler spoils the commit that gives up the first one
  EXPECT_TRUE(c->run_once());
  EXPECT_EQ(c->counts().failures, 2);
  EXPECT_EQ(b.log.count("dead_lettered"), 1u);
  EXPECT_EQ(b.counters.value("settle_dead_letters_total", {{"consumer", "tester"}, {"reason", "permanent"}}),
            1);
  EXPECT_EQ(c->counts().dead_letters, 1);
}

// Proves C2
TEST(consumer, deduplicates_by_aggregate_and_type_where_asked) {
  bench b;
  b.broker.messages = {bench::make("", "order-1"), bench::make("another-id", "order-1"),
                       bench::make("3", "order-2")};
  auto c = b.make_consumer(bench::insert, {.name = "tester", .key = dedup_key::aggregate_and_type});
  c->run_once();
  EXPECT_EQ(b.effects(), (names{"", "3"}));
  EXPECT_EQ(c->counts().duplicates, 1);
  const auto stored = b.db->read().execute("select message_id from settle_processed_events order by 1");
  EXPECT_EQ(stored[0][0].text(), "order-1-thing.done");
}

// Whether all of a batch is new, nothing, or some. Proves C1, C7
TEST(consumer, of_a_batch_with_copies_in_it_the_new_ones_run_once) {
  bench b;
  const auto deliver = [&](const std::vector<std::string>& ids) {
    for (const auto& id : ids) b.broker.messages.push_back(bench::make(id, "key-" + id));
  };
  auto c = b.make_consumer(bench::insert);
  deliver({"b", "a", "c"});
  c->run_once();
  deliver({"a", "d", "c", "e", "d"});
  c->run_once();
  deliver({"a", "b", "c", "d", "e"});
  c->run_once();
  EXPECT_EQ(b.effects(), (names{"b", "a", "c", "d", "e"}));
  EXPECT_EQ(c->counts().applied, 5);
  EXPECT_EQ(c->counts().duplicates, 8);
  EXPECT_EQ(count(*b.db, "settle_processed_events"), 5);
}

// Copies before anything of their kind was seen, among messages of other kinds. Proves C1, C7
TEST(consumer, of_a_batch_of_several_kinds_with_copies_the_new_ones_run_once) {
  bench b;
  const auto deliver = [&](const std::string& id, const std::string& type) {
    b.broker.messages.push_back(bench::make(id, ""));
    b.broker.messages.back().type = type;
  };
  for (const auto* type : {"x", "y"})
    for (const auto* id : {"2", "1", "2"}) deliver(std::string(type) + id, type);
  auto c = b.make_consumer(bench::insert);
  c->on("things", "", bench::insert);
  c->run_once();
  EXPECT_EQ(b.effects(), (names{"x2", "x1", "y2", "y1"}));
  EXPECT_EQ(c->counts().duplicates, 2);
}

// Proves C1
TEST(consumer, events_of_a_handler_commit_with_its_claim_and_name_their_cause) {
  bench b;
  auto incoming = bench::make("11111111-1111-7111-8111-111111111111", "a");
  incoming.extensions["correlationid"] = "checkout-9";
  incoming.extensions["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  b.broker.messages = {incoming};
  bool broken = true;
  auto c = b.make_consumer([&](const message&, transaction& tx) {
    publish(tx, event{.topic = "out", .type = "thing.followed", .key = "a", .payload = "y"});
    if (broken) throw std::runtime_error("after publishing");
  });
  c->run_once();
  EXPECT_EQ(count(*b.db, "settle_outbox"), 0);
  c->run_once();
  broken = false;
  b.time.advance(1s);
  c->run_once();
  const auto out = b.db->read().execute("select headers from settle_outbox");
  ASSERT_EQ(out.size(), 1u);
  EXPECT_NE(out[0][0].text().find(R"("causationid":"11111111-1111-7111-8111-111111111111")"),
            std::string::npos);
  EXPECT_NE(out[0][0].text().find(R"("correlationid":"checkout-9")"), std::string::npos);
  EXPECT_NE(out[0][0].text().find(R"("traceparent":"00-0af7)"), std::string::npos);
}

// The seed's third test: the same message in two consumers at once. Proves C5, C7, V1
TEST(consumer, of_concurrent_duplicates_one_runs_and_the_others_skip) {
  bench b;
  constexpr int threads = 4;
  constexpr int messages = 50;
  std::atomic<std::int64_t> applied = 0;
  std::atomic<std::int64_t> duplicates = 0;
  std::barrier start(threads);
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      list_broker own;
      for (int i = 0; i < messages; ++i) own.messages.push_back(bench::make(std::to_string(i), "k"));
      consumer c(*b.db, own, {.name = "tester", .batch_max = 3});
      c.on("things", "thing.done", bench::insert);
      start.arrive_and_wait();
      while (c.run_once()) {
      }
      applied += c.counts().applied;
      duplicates += c.counts().duplicates;
    });
  all.clear();
  EXPECT_EQ(applied, messages);
  EXPECT_EQ(duplicates, messages * (threads - 1));
  EXPECT_EQ(b.effects().size(), static_cast<std::size_t>(messages));
}

TEST(consumer, messages_of_a_type_without_a_handler_are_acknowledged_and_counted) {
  bench b;
  auto other = bench::make("1", "a");
  other.type = "thing.ignored";
  b.broker.messages = {other};
  auto c = b.make_consumer(bench::insert);
  EXPECT_TRUE(c->run_once());
  EXPECT_FALSE(c->run_once());
  EXPECT_EQ(c->counts().ignored, 1);
  EXPECT_EQ(b.broker.acknowledged.size(), 1u);
  EXPECT_EQ(count(*b.db, "settle_processed_events"), 0);
}

// Proves C11
TEST(consumer, is_held_to_the_topics_that_it_declares) {
  bench b;
  const auto handler = [](const message&, transaction&) {};
  const auto refused = [&](consumer_options options) -> std::string {
    auto made = b.make_consumer(handler, std::move(options));
    try {
      made->run_once();
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refused({.name = "tester", .topics = {"things"}}), "");
  EXPECT_NE(refused({.name = "tester", .topics = {"orders"}}).find("a handler for the topic things"),
            std::string::npos);
  EXPECT_NE(refused({.name = "tester", .topics = {"things", "orders"}}).find("names the topic orders"),
            std::string::npos);
}

TEST(consumer, refuses_an_empty_function_when_it_is_given) {
  bench b;
  consumer made(*b.db, b.broker, {.name = "tester"});
  const auto refused = [](const auto& action) { return test::code_of(action) == errc::invalid_argument; };
  EXPECT_TRUE(refused([&] { made.on("things", "thing.done", consumer::raw_handler()); }));
  EXPECT_TRUE(refused([&] { made.on_batch("things", "thing.done", consumer::raw_batch_handler()); }));
  EXPECT_TRUE(
      refused([&] { made.on<order_placed>(std::function<void(const order_placed&, transaction&)>()); }));
  made.on("things", "thing.done", [](const message&, transaction&) {});
}

// Proves C11
TEST(consumer, lists_what_it_listens_to) {
  bench b;
  auto made = b.make_consumer([](const message&, transaction&) {});
  made->on("orders", "", [](const message&, transaction&) {});
  const std::vector<subscribed> expected = {{"orders", ""}, {"things", "thing.done"}};
  EXPECT_EQ(made->subscriptions(), expected);
}

// Proves C3
TEST(consumer, a_payload_that_cannot_be_decoded_is_a_dead_letter_and_its_key_goes_on) {
  temp_dir dir;
  order_world world(dir);
  {
    auto tx = world.orders().begin();
    publish(tx, event{.topic = "orders", .type = "order.placed", .key = "customer-1", .payload = "nonsense"});
    tx.commit();
  }
  world.place(3);
  world.drain();
  EXPECT_EQ(world.consumer().counts().applied, 1);
  EXPECT_EQ(world.consumer().counts().dead_letters, 1);
}

// A consumer that slept past its lease finds its partition fenced where its effects would go.
// Proves C1, C4
TEST(consumer, a_replaced_owner_writes_nothing) {
  bench b;
  b.broker.messages = {bench::make("1", "a")};
  b.broker.partition = "broker/things/0";
  auto zombie = b.make_consumer(bench::insert);
  zombie->run_once();
  list_broker newer;
  newer.messages = {bench::make("2", "a")};
  newer.partition = "broker/things/0";
  consumer owner(*b.db, newer, {.name = "tester"});
  owner.on("things", "thing.done", bench::insert);
  while (owner.run_once()) {
  }
  b.broker.messages.push_back(bench::make("3", "a"));
  for (int round = 0; round < 3; ++round) zombie->run_once();
  EXPECT_EQ(b.effects(), (names{"1", "2"}));
  EXPECT_EQ(b.broker.doubted, std::vector<std::uint32_t>{0}) << "it asks the broker once, and waits";
  EXPECT_EQ(zombie->counts().failures, 0) << "nobody is charged";
}

// Epochs of two owners that both have the broker's word would chase each other if each minted a higher one
// for having found one. Proves C1, C4
TEST(consumer, an_owner_that_found_another_one_goes_on_when_the_broker_says_that_it_is_the_owner) {
  bench b;
  b.broker.messages = {bench::make("1", "a")};
  b.broker.partition = "broker/things/0";
  b.broker.still_ours = true;
  auto owner = b.make_consumer(bench::insert);
  owner->run_once();
  {
    auto tx = b.db->begin();  // of one that believed that it was the owner, and has gone
    tx.execute("update settle_consumer_fences set epoch = epoch + 1, owner = 'another', at_work = 0");
    tx.commit();
  }
  b.broker.messages.push_back(bench::make("2", "a"));
  for (int round = 0; round < 3; ++round) owner->run_once();
  EXPECT_EQ(b.broker.doubted.size(), 1u);
  EXPECT_EQ(b.effects(), (names{"1", "2"}));
  EXPECT_EQ(b.db->read().execute("select epoch from settle_consumer_fences")[0][0].integer(), 3);
}

// Proves C3 (a store that is down charges nobody)
TEST(consumer, trouble_of_the_store_charges_nobody) {
  bench b;
  b.broker.messages = {bench::make("1", "a")};
  auto c = b.make_consumer(
      [](const message&, transaction&) { throw error(errc::store_unavailable, "the disk is away"); });
  EXPECT_FALSE(c->run_once());
  EXPECT_EQ(c->counts().failures, 0);
  EXPECT_EQ(c->counts().pauses, 1);
}

// When the drain time is over, a handler that is still at work in the database is interrupted, and its
// batch rolls back.
TEST(consumer, a_stop_cancels_a_handler_that_does_not_end) {
  bench b;
  b.env.time = &system_time();
  b.db = sqlite::open(b.dir.file("service.db"), {.env = b.env});
  b.broker.messages = {bench::make("1", "a")};
  std::binary_semaphore entered(0);
  auto c = b.make_consumer([&](const message& m, transaction& tx) {
    bench::insert(m, tx);
    entered.release();
    tx.execute(
        "with recursive forever(n) as (select 1 union all select n + 1 from forever) select max(n) from "
        "forever");
  });
  {
    background loop(*c);
    entered.acquire();
    EXPECT_FALSE(loop.stop(50ms));
  }
  EXPECT_TRUE(b.effects().empty());
  EXPECT_EQ(c->counts().failures, 0);
}

}  // namespace
}  // namespace settle
