// How long a consumer remembers, and what happens to copies that come later still.
#include <gtest/gtest.h>

#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"
#include "sql/migrations.hpp"
#include "sqlite/backup.hpp"
#include "support/list_broker.hpp"
#include "support/order_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::order_world;
using test::temp_dir;

std::int64_t count(database& db, const std::string& table) {
  return db.read().execute("select count(*) from " + table)[0][0].integer();
}

struct dedup_retention : ::testing::Test {
  dedup_retention() : world(dir) {}

  void place_and_drain(int from, int to) {
    for (int i = from; i < to; ++i) world.place(i);
    world.drain();
  }

  // Enough rounds for everyone to renew its lease and to sweep.
  void pass(duration time) {
    world.time().advance(time);
    for (int i = 0; i < 3; ++i) {
      world.drain();
      world.time().advance(1min);
    }
    world.drain();
  }

  std::int64_t records() { return count(world.warehouse(), "settle_processed_events"); }

  // Everything that the broker holds, delivered once more as a relay would that has lost its progress.
  void publish_copies() {
    auto tx = world.orders().begin();
    tx.execute(
        "update settle_shares set position = 0, owner = null, epoch = epoch + 1 where scope = 'outbox'");
    tx.commit();
    pass(20s);
  }

  temp_dir dir;
  order_world world;
};

// Proves C6
TEST_F(dedup_retention, records_go_after_a_day) {
  place_and_drain(0, 300);
  pass(23h);
  EXPECT_EQ(records(), 300);
  pass(1h);
  EXPECT_EQ(records(), 0);
  EXPECT_EQ(count(world.warehouse(), "settle_processed_batches"), 0);
}

// Proves C6
TEST_F(dedup_retention, of_two_consumers_in_one_database_each_forgets_its_own) {
  test::list_broker notes;
  for (const auto* id : {"a", "b", "c"}) {
    auto& m = notes.messages.emplace_back();
    m.id = id;
    m.type = "order.noted";
    m.topic = "notes";
  }
  consumer noting(world.warehouse(), notes, {.name = "noting", .dedup_keep = 24h * 7});
  noting.on("notes", "", [](const message&, transaction&) {});
  while (noting.run_once()) {
  }
  place_and_drain(0, 10);
  while (noting.run_once()) {
  }
  pass(25h);
  while (noting.run_once()) {
  }
  EXPECT_EQ(records(), 3);
  world.time().advance(24h * 7);
  for (int i = 0; i < 3; ++i) {
    noting.run_once();
    world.time().advance(1min);
  }
  EXPECT_EQ(records(), 0);
  EXPECT_EQ(count(world.warehouse(), "settle_processed_batches"), 0);
}

// Proves C6
TEST_F(dedup_retention, notes_from_before_their_table_changed_are_still_good) {
  const auto old = sqlite::open(dir.file("old.db"), {.env = world.warehouse().env()});
  const auto all = sql::service_migrations(dialect::sqlite);
  sql::apply_migrations(*old, all.first(13));
  {
    auto tx = old->begin();
    for (const auto* consumer : {"one", "other"})
      for (const auto* id : {"1", "2", "3"})
        tx.execute(
            "insert into settle_processed_batches (consumer, id, processed_at, message_ids, logs) "
            "values ($1, $2, 1, json_array($1 || $2), '[[\"t/0\",5,[[\"s\",[[7,\"a' || $2 || '\"]]]]]]')",
            {consumer, id});
    tx.execute(
        "insert into settle_processed_events (consumer, message_id, topic, event_type, processed_at) "
        "select consumer, consumer || id, 't', 'e', 1 from settle_processed_batches");
    tx.execute("insert into settle_settled_logs (consumer, log, position) values ('one', 't/0', 5)");
    tx.commit();
  }
  sql::apply_migrations(*old, all);
  EXPECT_EQ(count(*old, "settle_processed_batches"), 6);
  test::list_broker nothing;
  consumer one(*old, nothing, {.name = "one"});
  one.on("t", "", [](const message&, transaction&) {});
  for (int i = 0; i < 5; ++i) {
    one.run_once();
    world.time().advance(2h);
  }
  EXPECT_EQ(count(*old, "settle_processed_events where consumer = 'one'"), 0);
  EXPECT_EQ(count(*old, "settle_processed_events where consumer = 'other'"), 3);
  EXPECT_EQ(count(*old, "settle_processed_batches"), 3);
  EXPECT_EQ(count(*old, "settle_dedup_horizons where lane in (7, -1) and log = 't/0' and place = 'a3'"), 2);
}

// Proves C6
TEST_F(dedup_retention, a_consumer_under_load_forgets_faster_than_it_learns) {
  for (int i = 0; i < 20; ++i) place_and_drain(10 * i, 10 * i + 10);
  world.time().advance(25h);
  for (int i = 20; i < 40; ++i) {
    world.place(i * 10);
    world.relay().run_once();
    world.consumer().run_once();  // has work every time, so it never comes to sweep
  }
  EXPECT_LT(records(), 100);
}

// Proves C6, C10
TEST_F(dedup_retention, a_record_stays_while_the_broker_may_deliver_its_message_again) {
  test::list_broker forgetful;
  forgetful.notes_acknowledgements = false;
  const auto deliver = [&](int number) {
    auto& m = forgetful.messages.emplace_back();
    m.id = std::to_string(number);
    m.type = "order.noted";
    m.topic = "notes";
  };
  for (int i = 0; i < 30; ++i) deliver(i);
  consumer noting(world.warehouse(), forgetful, {.name = "noting"});
  noting.on("notes", "", [](const message&, transaction&) {});
  const auto run_for_days = [&](int days) {
    for (int i = 0; i < days; ++i) {
      while (noting.run_once()) {
      }
      world.time().advance(24h);
    }
  };
  run_for_days(30);
  EXPECT_EQ(records(), 30);
  forgetful.notes_acknowledgements = true;
  deliver(30);
  run_for_days(3);
  EXPECT_EQ(records(), 0) << "and then they go";
}

// The next version does not listen to the topic any more, so nobody asks the broker about it. Proves C6
TEST_F(dedup_retention, records_of_a_topic_that_is_no_longer_listened_to_go_too) {
  test::list_broker notes, others;
  const auto deliver = [](test::list_broker& to, const std::string& id) {
    auto& m = to.messages.emplace_back();
    m.id = id;
    m.type = m.topic = "notes";
  };
  const auto run = [&](test::list_broker& from) {
    consumer noting(world.warehouse(), from, {.name = "noting"});
    noting.on("notes", "", [](const message&, transaction&) {});
    while (noting.run_once()) {
    }
    noting.leave();
  };
  others.log = "others";
  for (int i = 0; i < 3; ++i) deliver(notes, std::to_string(i));
  run(notes);
  for (int day = 0; day < 4; ++day) {
    world.time().advance(24h);
    deliver(others, "other-" + std::to_string(day));
    run(others);
  }
  EXPECT_EQ(count(world.warehouse(), "settle_processed_events where message_id in ('0', '1', '2')"), 0);
}

// Proves C8, C10
TEST_F(dedup_retention, a_message_that_waits_for_a_month_is_no_late_copy) {
  world.outage = true;
  world.place(0);
  auto c = world.make_consumer({.name = "patient", .transient_max_age = 24h * 90});
  world.relay().run_once();
  while (c->run_once()) {
  }
  for (int i = 0; i < 30; ++i) {
    world.time().advance(24h);
    while (c->run_once()) {
    }
  }
  world.outage = false;
  world.time().advance(1min);
  while (c->run_once()) {
  }
  EXPECT_EQ(c->counts().applied, 1);
}

// Proves C10
TEST_F(dedup_retention, a_copy_that_comes_after_its_record_has_gone_does_not_run) {
  place_and_drain(0, 50);
  world.time().advance(25h);
  while (world.consumer().run_once()) {  // forgets, while the outbox still holds the events
  }
  ASSERT_EQ(records(), 0);
  publish_copies();
  EXPECT_EQ(world.consumer().counts().beyond_horizon, 50);
  EXPECT_EQ(world.consumer().counts().applied, 50);
  EXPECT_EQ(world.counters().value("settle_consumer_beyond_horizon_total", {{"consumer", "warehouse"}}), 50);
  EXPECT_EQ(world.log().count("beyond_dedup_horizon"), 50u);
  place_and_drain(50, 60);
  EXPECT_EQ(world.consumer().counts().applied, 60) << "new ones run";
  EXPECT_TRUE(world.verify().clean());
}

// Proves C6, C10
TEST_F(dedup_retention, a_clock_that_jumps_makes_nothing_run_twice) {
  place_and_drain(0, 20);
  pass(24h * 400);
  pass(-24h * 800);
  place_and_drain(20, 30);
  pass(24h * 900);
  publish_copies();
  EXPECT_EQ(world.consumer().counts().applied, 30);
  EXPECT_TRUE(world.verify().clean());
}

// Proves C10
TEST_F(dedup_retention, the_horizon_moves_in_the_transaction_that_forgets) {
  place_and_drain(0, 10);
  temp_dir copies;
  testing::explore({
      .prepare =
          [&] {
            copies.clear();
            for (const auto* file : {"orders.db", "warehouse.db", "broker.db"})
              sqlite::copy_online(dir.file(file), copies.file(file));
          },
      .run =
          [&](fault_points& faults) {
            order_world later(copies, {.faults = &faults, .hours_later = 26});
            while (later.consumer().run_once()) {
            }
          },
      .recover = [] {},
      .check =
          [&](const std::string& where) {
            const auto file = sqlite::open(copies.file("warehouse.db"));
            const bool forgotten = count(*file, "settle_processed_events") == 0;
            EXPECT_EQ(forgotten, count(*file, "settle_dedup_horizons") > 0) << where;
            EXPECT_EQ(forgotten, count(*file, "settle_processed_batches") == 0) << where;
            EXPECT_TRUE(forgotten || where != "undisturbed");
          },
  });
}

// A message that no relay has numbered is known by its place in the log. Proves C10
TEST_F(dedup_retention, an_offset_that_is_set_back_runs_nothing_again) {
  message m;
  m.topic = "orders";
  m.type = "order.placed";
  m.source = "elsewhere";
  m.key = "k";
  auto first = world.make_consumer({.name = "warehouse", .dedup_keep = 1h});
  first->run_once();
  for (int i = 0; i < 10; ++i) {
    m.id = "foreign-" + std::to_string(i);
    m.payload = codec<test::order_placed>::encode({test::order_name(i), "k", 1});
    world.broker().publishing().publish({&m, 1});
  }
  while (first->run_once()) {
  }
  ASSERT_EQ(first->counts().applied, 10);
  world.time().advance(2h);
  while (first->run_once()) {
  }
  ASSERT_EQ(records(), 0);
  first->leave();
  auto tx = world.broker_file().begin();
  tx.execute("update settle_shares set position = 0");
  tx.commit();
  auto again = world.make_consumer({.name = "warehouse"});
  for (int i = 0; i < 5; ++i) again->run_once();
  EXPECT_EQ(again->counts().applied, 0);
  EXPECT_EQ(again->counts().beyond_horizon, 10);
}

// Proves C10, O12
TEST_F(dedup_retention, a_restored_database_numbers_its_events_above_all_earlier_ones) {
  place_and_drain(0, 5);
  temp_dir copies;
  sqlite::copy_online(dir.file("orders.db"), copies.file("orders.db"));
  place_and_drain(5, 20);  // numbers that the backup does not know
  sqlite::prepare_restored_service(copies.file("orders.db"));
  const auto restored = sqlite::open(copies.file("orders.db"));
  auto tx = restored->begin();
  publish(tx, event{.topic = "orders", .type = "order.placed", .key = "k"});
  EXPECT_GT(tx.execute("select max(seq) from settle_outbox")[0][0].integer(), 20);
  EXPECT_EQ(
      tx.execute("select (select max(seq) from settle_outbox) - numbers_skipped from settle_identity")[0][0]
          .integer(),
      6)
      << "as many as there were events";
}

// Proves C10, O12
TEST_F(dedup_retention, an_outbox_that_was_empty_in_the_backup_goes_on_above_it_too) {
  temp_dir copies;
  sqlite::copy_online(dir.file("orders.db"), copies.file("orders.db"));
  sqlite::prepare_restored_service(copies.file("orders.db"));
  const auto restored = sqlite::open(copies.file("orders.db"));
  auto tx = restored->begin();
  publish(tx, event{.topic = "orders", .type = "order.placed", .key = "k"});
  EXPECT_GT(tx.execute("select max(seq) from settle_outbox")[0][0].integer(), 1'000'000);
}

TEST_F(dedup_retention, a_negative_time_is_refused) {
  EXPECT_THROW(world.make_consumer({.name = "w", .dedup_keep = -1s}), error);
}

}  // namespace
}  // namespace settle
