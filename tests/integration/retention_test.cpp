// What is removed when, and what never is.
#include <gtest/gtest.h>

#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "support/order_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::order_world;
using test::temp_dir;

std::int64_t count(database& db, const std::string& table) {
  return db.read().execute("select count(*) from " + table)[0][0].integer();
}

struct retention : ::testing::Test {
  retention() : world(dir) {}

  void place(int from, int to) {
    for (int i = from; i < to; ++i) world.place(i);
  }

  void place_and_drain(int from, int to) {
    place(from, to);
    world.drain();
  }

  // Enough rounds for every relay and subscription to renew its lease and remove a slice.
  void pass(duration time) {
    world.time().advance(time);
    for (int i = 0; i < 3; ++i) {
      world.drain();
      world.time().advance(4s);
    }
    world.drain();
  }

  temp_dir dir;
  order_world world;
};

// Proves O9
TEST_F(retention, published_events_leave_the_outbox_after_twelve_hours) {
  place_and_drain(0, 50);
  pass(11h);
  EXPECT_EQ(count(world.orders(), "settle_outbox"), 50);
  pass(1h);
  EXPECT_EQ(count(world.orders(), "settle_outbox"), 0);
  EXPECT_EQ(count(world.orders(), "settle_outbox_progress"), 0);
  EXPECT_TRUE(world.verify().clean());
}

// Proves O9, O1
TEST_F(retention, an_event_that_is_not_published_stays_however_old_it_is) {
  place(0, 5);
  world.time().advance(24h * 365);
  place(5, 6);
  EXPECT_EQ(count(world.orders(), "settle_outbox"), 6);
  pass(1s);
  EXPECT_EQ(world.consumer().counts().applied, 6);
}

// The position is never used again, so a cursor cannot skip what comes after a removal. Proves O9, O1
TEST_F(retention, events_after_a_removal_are_published_as_before) {
  place_and_drain(0, 10);
  pass(13h);
  ASSERT_EQ(count(world.orders(), "settle_outbox"), 0);
  place(10, 20);
  pass(1s);
  EXPECT_EQ(world.consumer().counts().applied, 20);
}

// Proves O9
TEST_F(retention, a_message_leaves_the_broker_when_it_is_old_and_every_group_has_acknowledged_it) {
  auto second = world.make_consumer({.name = "slow"});
  second->run_once();  // registers its group, then stays away
  place_and_drain(0, 20);
  pass(13h);
  place_and_drain(20, 21);
  pass(1s);
  EXPECT_EQ(count(world.broker_file(), "broker_messages"), 21) << "one group has not seen them";
  while (second->run_once()) {
  }
  pass(4s);
  EXPECT_EQ(second->counts().applied, 21);
  EXPECT_EQ(count(world.broker_file(), "broker_messages"), 1) << "the young one stays";
}

// Proves O9
TEST_F(retention, a_clock_that_jumps_never_removes_what_is_not_acknowledged) {
  world.outage = true;
  place(0, 10);
  world.drain();
  pass(24h * 365);   // years ahead
  pass(-24h * 400);  // and back before the beginning
  EXPECT_EQ(world.consumer().counts().applied, 0);
  world.outage = false;
  pass(24h * 500);
  const auto report = world.verify();
  EXPECT_EQ(report.applied, 10);
  EXPECT_TRUE(report.clean());
}

// Found by the simulation: a clock that went back made young messages look as if they had no age, and a
// topic without groups had nobody to keep them. Proves O9
TEST_F(retention, a_clock_that_goes_back_does_not_make_messages_old) {
  auto topic = sqlite::open_broker(dir.file("fresh.db"), {.env = world.orders().env()});
  message m;
  m.topic = "news";
  m.key = "k";
  for (const auto* id : {"1", "2"}) {
    m.id = id;
    topic->publishing().publish({&m, 1});
    world.time().advance(-2h);
  }
  auto late = topic->subscribe({.group = "late", .topics = {"news"}});
  EXPECT_EQ(late->fetch(10).deliveries.size(), 2u);
}

TEST_F(retention, a_full_broker_refuses_and_takes_messages_again_when_there_is_room) {
  environment env = world.orders().env();
  auto small = sqlite::open_broker(dir.file("small.db"), {.env = env, .bytes_max = 1024 * 1024});
  relay r(world.orders(), small->publishing(), {.batch_max = 10});
  for (int i = 0; i < 40; ++i) {
    auto tx = world.orders().begin();
    publish(tx, event{.topic = "t", .type = "e", .key = "k", .payload = std::string(100'000, 'x')});
    tx.commit();
  }
  for (int i = 0; i < 30; ++i) r.run_once();
  auto file = sqlite::open(dir.file("small.db"), {.env = env});
  const auto stored = count(*file, "broker_messages");
  EXPECT_GE(stored, 10);
  EXPECT_LT(stored, 40) << "it stops taking messages";
  EXPECT_GE(world.log().count("relay_paused"), 1u);
  // A larger limit, as an operator would set it: everything arrives.
  small = sqlite::open_broker(dir.file("small.db"), {.env = env});
  relay again(world.orders(), small->publishing());
  world.time().advance(1h);
  while (again.run_once()) {
  }
  EXPECT_EQ(file->read().execute("select count(distinct event_id) from broker_messages")[0][0].integer(), 40);
}

// Proves O5
TEST_F(retention, a_natural_key_is_published_once_for_a_day) {
  const event shipped{.topic = "parcels", .type = "order.shipped", .key = "order-1", .payload = "x"};
  const auto emit = [&] {
    auto tx = world.orders().begin();
    const auto result = publish_once(tx, shipped);
    tx.commit();
    return result;
  };
  const auto first = emit();
  EXPECT_FALSE(first.skipped);
  const auto second = emit();
  EXPECT_TRUE(second.skipped);
  EXPECT_EQ(second.id, first.id);
  EXPECT_EQ(count(world.orders(), "settle_outbox"), 1);
  EXPECT_EQ(world.counters().value("settle_publish_skipped_total", {{"topic", "parcels"}}), 1);
  EXPECT_EQ(world.log().count("publish_skipped"), 1u);
  pass(23h);
  EXPECT_TRUE(emit().skipped);
  pass(2h);
  const auto later = emit();
  EXPECT_FALSE(later.skipped) << "the stated time is over";
  EXPECT_EQ(later.id, first.id) << "consumers that still remember it skip it";
}

// Proves O5
TEST_F(retention, natural_keys_do_not_collide_where_joined_text_would) {
  const auto id_of = [&](const std::string& key, const std::string& type) {
    auto tx = world.orders().begin();
    const auto result = publish_once(tx, event{.topic = "t", .type = type, .key = key});
    tx.commit();
    EXPECT_FALSE(result.skipped) << key << " " << type;
    return result.id;
  };
  EXPECT_NE(id_of("a-b", "c"), id_of("a", "b-c"));
  EXPECT_EQ(id_of("1", "x").text(), "4f206d02-ddf8-5080-b021-80b9e023e8e3")
      << "derived ids are fixed for ever";
  const auto row = world.orders().read().execute("select headers from settle_outbox order by seq limit 1");
  EXPECT_EQ(row[0][0].text(), R"({"naturalkey":"a-b-c"})");
}

// Proves O5
TEST_F(retention, a_natural_key_is_free_again_if_its_transaction_rolls_back) {
  const event once{.topic = "t", .type = "e", .key = "k"};
  {
    auto tx = world.orders().begin();
    EXPECT_FALSE(publish_once(tx, once).skipped);
  }
  auto tx = world.orders().begin();
  EXPECT_FALSE(publish_once(tx, once).skipped);
}

TEST_F(retention, a_natural_key_needs_a_key_and_derives_its_id) {
  auto tx = world.orders().begin();
  EXPECT_THROW(publish_once(tx, event{.topic = "t", .type = "e", .key = ""}), error);
  EXPECT_THROW(publish_once(tx, event{.topic = "t", .type = "e", .key = "k"},
                            {.id = world.orders().env().ids->next_as<event_id>()}),
               error);
}

}  // namespace
}  // namespace settle
