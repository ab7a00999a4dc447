// From a failure to its replay through relay and broker, with two consumers that have a database each; on
// both databases, and on every kind of broker.
#include <gtest/gtest.h>

#include <optional>

#include "settle/dead_letter.hpp"
#include "settle/postgres.hpp"
#include "support/databases.hpp"
#include "support/order_world.hpp"
#include "support/postgres_fixture.hpp"
#include "support/scenario_broker.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::order_placed;
using test::order_world;

struct replay_case {
  dialect speaks;
  test::broker_kind broker;
};

std::string name_of(const replay_case& one) {
  return (one.speaks == dialect::sqlite ? "sqlite_with_" : "postgres_with_") + name_of(one.broker);
}
void PrintTo(const replay_case& one, std::ostream* out) { *out << name_of(one); }

// The warehouse fails; billing, which listens to the same topic, does not.
struct addressed_replay : ::testing::TestWithParam<replay_case> {
  void SetUp() override {
    if (const auto missing = on.missing(); !missing.empty()) GTEST_SKIP() << missing;
    if (GetParam().speaks == dialect::postgres) {
      if (const auto missing = test::postgres_missing(); !missing.empty()) GTEST_SKIP() << missing;
      servers.emplace();
      world.emplace(
          dir, on.with({.orders = servers->orders.conninfo(), .warehouse = servers->warehouse.conninfo()}));
      billing_db = postgres::open(servers->billing.conninfo(), {.env = world->orders().env()});
    } else {
      world.emplace(dir, on.with({}));
      billing_db = sqlite::open(dir.file("billing.db"), {.env = world->orders().env()});
    }
    migrate(*billing_db);
    auto tx = billing_db->begin();
    tx.execute("create table charges (order_id text not null)");
    tx.commit();
    billing.emplace(*billing_db, world->broker(), consumer_options{.name = "billing"});
    billing->on<order_placed>([](const order_placed& e, transaction& tx) {
      tx.execute("insert into charges (order_id) values ($1)", {e.order_id});
    });
    replays.emplace(world->warehouse(), world->broker().publishing());
  }

  void drain() {
    do world->drain();
    while (replays->run_once() || billing->run_once());
  }
  // Everybody forgets what is older than a day.
  void pass_two_days() {
    for (int i = 0; i < 96; ++i) {
      world->time().advance(30min);
      drain();
    }
  }
  replay_outcome replay_all() {
    return replay(world->warehouse(), {.consumer = "warehouse"}, {.poll = 1ms}, {}, [&](const auto&) {
      drain();
      world->time().advance(10ms);
    });
  }

  static std::int64_t count(database& db, const std::string& table) {
    return db.read().execute("select count(*) from " + table)[0][0].integer();
  }
  static std::string own(database& db, const std::string& table) {
    return (db.speaks() == dialect::postgres ? "settle." : "settle_") + table;
  }

  struct scratch {
    test::scratch_database orders, warehouse, billing;
  };
  std::optional<scratch> servers;
  test::temp_dir dir;
  test::scenario_broker on{GetParam().broker, {"warehouse", "billing"}};
  std::optional<order_world> world;
  std::unique_ptr<database> billing_db;
  std::optional<consumer> billing;
  std::optional<relay> replays;
};

// Proves C10, D1, D3
TEST_P(addressed_replay, runs_once_at_the_one_that_failed_long_after_all_records_have_expired) {
  for (int i = 0; i < 6; ++i) world->failing.insert(test::order_name(i));
  for (int i = 0; i < 10; ++i) world->place(i);
  for (int i = 0; i < 20; ++i) {
    drain();
    world->time().advance(1s);
  }
  EXPECT_EQ(world->consumer().counts().dead_letters, 6);
  EXPECT_EQ(count(*billing_db, "charges"), 10);
  pass_two_days();
  ASSERT_EQ(count(world->warehouse(), own(world->warehouse(), "processed_events")), 0);
  ASSERT_EQ(count(*billing_db, own(*billing_db, "processed_events")), 0);

  world->failing.clear();
  const auto outcome = replay_all();
  EXPECT_EQ(outcome.end, replay_end::done);
  EXPECT_EQ(outcome.counts.ran, 6);
  EXPECT_EQ(count(world->warehouse(), "shipments"), 10);
  EXPECT_EQ(world->consumer().counts().replays, 6);
  EXPECT_EQ(count(*billing_db, "charges"), 10) << "nobody else is touched";
  EXPECT_EQ(billing->counts().others_replays, 6);
  EXPECT_EQ(replay_all().counts.sent, 0) << "there is nothing left to replay";
}

// Proves D3
TEST_P(addressed_replay, of_what_still_fails_stops_and_leaves_the_letters_as_they_were) {
  for (int i = 0; i < 12; ++i) {
    world->failing.insert(test::order_name(i));
    world->place(i);
  }
  for (int i = 0; i < 200 && world->consumer().counts().dead_letters < 12; ++i) {
    drain();
    world->time().advance(1s);
  }
  ASSERT_EQ(world->consumer().counts().dead_letters, 12);
  const auto outcome = replay_all();
  EXPECT_EQ(outcome.end, replay_end::too_many_failures);
  EXPECT_EQ(outcome.counts.sent, 1) << "the first batch is one letter";
  EXPECT_EQ(dead_letters(world->warehouse(), {.status = dead_letter_status::fresh}).size(), 12u);
}

// Proves C10
TEST_P(addressed_replay, is_how_an_operator_allows_what_came_back_after_its_records_had_expired) {
  const auto forgetful = [&] { return world->make_consumer({.name = "hurried", .dedup_keep = 1h}); };
  const auto run = [&](consumer& c) {
    world->until_quiet([&] { return world->relay().run_once() || replays->run_once() || c.run_once(); });
  };
  auto first = forgetful();
  run(*first);
  for (int i = 0; i < 5; ++i) world->place(i);
  run(*first);
  for (int i = 0; i < 6; ++i) {
    world->time().advance(30min);
    run(*first);
  }
  first->leave();
  on.forget_acknowledgements(*world, "hurried");
  auto again = forgetful();
  run(*again);
  EXPECT_EQ(again->counts().applied, 0) << "nothing runs again";
  const dead_letter_filter late{.consumer = "hurried", .reason = dead_letter_reason::beyond_dedup_horizon};
  const auto letters = dead_letters(world->warehouse(), late);
  ASSERT_EQ(letters.size(), 5u) << "and everything is to be seen";
  const auto replayed = [&](const dead_letter_filter& which) {
    const auto step = [&](const auto&) {
      run(*again);
      world->time().advance(10ms);
    };
    return replay(world->warehouse(), which, {.poll = 1ms}, {}, step).counts.ran;
  };
  EXPECT_EQ(replayed({.consumer = "hurried"}), 0) << "they may have been applied, and nobody has said so";
  EXPECT_EQ(replayed({.ids = {letters[1].id, letters[2].id}}), 2);
  EXPECT_EQ(count(world->warehouse(), "shipments"), 7) << "the operator wanted these two";
  EXPECT_EQ(replayed(late), 3) << "and now all of that reason";
}

std::vector<replay_case> every_case() {
  std::vector<replay_case> all;
  for (const auto broker : test::every_broker())
    for (const auto speaks : {dialect::sqlite, dialect::postgres}) all.push_back({speaks, broker});
  return all;
}

INSTANTIATE_TEST_SUITE_P(on, addressed_replay, ::testing::ValuesIn(every_case()),
                         [](const auto& of) { return name_of(of.param); });

}  // namespace
}  // namespace settle
