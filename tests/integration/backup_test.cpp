// Copies of a running system, and the system that is made from them.
#include "sqlite/backup.hpp"

#include <gtest/gtest.h>

#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/publish.hpp"
#include "support/order_world.hpp"

namespace settle {
namespace {

using test::order_world;
using test::temp_dir;

struct backup : ::testing::Test {
  // The order that `settle backup` keeps to: the broker first.
  void copy_all() {
    for (const auto* file : {"broker.db", "orders.db", "warehouse.db"})
      sqlite::copy_online(dir.file(file), copies.file(file));
  }

  void prepare_copies() {
    sqlite::prepare_restored_broker(copies.file("broker.db"));
    sqlite::prepare_restored_service(copies.file("orders.db"));
    sqlite::prepare_restored_service(copies.file("warehouse.db"));
  }

  temp_dir dir;
  temp_dir copies;
};

// The broker's copy is the oldest: what it lacks is published again from the outbox. Proves O12
TEST_F(backup, a_restored_system_has_lost_nothing_that_the_backup_holds) {
  order_world world(dir);
  for (int i = 0; i < 10; ++i) world.place(i);
  world.drain();
  sqlite::copy_online(dir.file("broker.db"), copies.file("broker.db"));
  for (int i = 10; i < 20; ++i) world.place(i);
  world.relay().run_once();  // published after the broker was copied, before the service is
  sqlite::copy_online(dir.file("orders.db"), copies.file("orders.db"));
  sqlite::copy_online(dir.file("warehouse.db"), copies.file("warehouse.db"));
  prepare_copies();

  order_world restored(copies, {.hours_later = 1});
  restored.drain();
  const auto report = restored.verify();
  EXPECT_EQ(report.committed, 20);
  EXPECT_EQ(report.applied, 20);
  EXPECT_TRUE(report.clean());
}

// Owners of the lost broker had higher epochs; consumers that remember them must not shut the new ones out.
TEST_F(backup, a_restored_broker_is_another_broker_to_its_consumers) {
  order_world world(dir);
  world.place(1);
  world.drain();
  copy_all();
  for (int i = 0; i < 3; ++i) {  // owners come and go, and epochs grow
    world.consumer().leave();
    world.place(10 + i);
    world.drain();
  }
  std::filesystem::remove(copies.file("warehouse.db"));
  sqlite::copy_online(dir.file("warehouse.db"), copies.file("warehouse.db"));  // the consumer's file survived
  prepare_copies();
  order_world restored(copies, {.hours_later = 1});
  restored.place(50);
  restored.drain();
  EXPECT_EQ(restored.consumer().counts().applied, 1);
}

// Proves O12
TEST_F(backup, each_restore_raises_the_generation) {
  {
    order_world world(dir);
  }
  copy_all();
  EXPECT_EQ(sqlite::prepare_restored_service(copies.file("orders.db")), 2);
  EXPECT_EQ(sqlite::prepare_restored_service(copies.file("orders.db")), 3);
}

// A restore may die anywhere: until the last step there is no file that could be taken for a restored one.
// Proves O12
TEST_F(backup, a_restored_file_appears_only_when_it_is_ready) {
  {
    order_world world(dir);
    for (int i = 0; i < 5; ++i) world.place(i);
    world.drain();
  }
  testing::explore({
      .prepare = [&] { copies.clear(); },
      .run =
          [&](fault_points& faults) {
            const auto part = copies.file("orders.db.restoring");
            faults.reached("copy.before");
            sqlite::copy_online(dir.file("orders.db"), part);
            faults.reached("prepare.before");
            sqlite::prepare_restored_service(part);
            faults.reached("place.before");
            sqlite::put_in_place(part, copies.file("orders.db"));
            faults.reached("place.after");
          },
      .recover = [] {},
      .check =
          [&](const std::string& where) {
            if (!std::filesystem::exists(copies.file("orders.db"))) {
              EXPECT_EQ(where.find("place.after"), std::string::npos) << where;
              EXPECT_NE(where, "undisturbed");
              return;
            }
            const auto db = sqlite::open(copies.file("orders.db"));
            EXPECT_EQ(db->read().execute("select generation from settle_identity")[0][0].integer(), 2)
                << where;
            EXPECT_EQ(db->read().execute("select max(position) from settle_shares")[0][0].integer(), 0)
                << where;
          },
  });
}

TEST_F(backup, a_copy_is_of_one_moment_and_never_overwrites) {
  order_world world(dir);
  world.place(1);
  auto open = world.orders().begin();
  open.execute("insert into orders (id, customer, total_cents) values ('open', 'c', 1)");
  sqlite::copy_online(dir.file("orders.db"), copies.file("orders.db"));  // a writer does not hold it up
  open.commit();
  const auto copy = sqlite::open(copies.file("orders.db"));
  EXPECT_EQ(copy->read().execute("select count(*) from orders")[0][0].integer(), 1);
  EXPECT_EQ(copy->read().execute("pragma integrity_check")[0][0].text(), "ok");
  EXPECT_THROW(sqlite::copy_online(dir.file("orders.db"), copies.file("orders.db")), error);
}

// Proves V2
TEST(records_checker, finds_what_was_acknowledged_without_a_record) {
  temp_dir dir;
  order_world world(dir);
  for (int i = 0; i < 5; ++i) world.place(i);
  world.drain();
  for (auto* db : {&world.orders(), &world.warehouse()}) {
    auto tx = db->begin();
    tx.execute("delete from settle_effects");
    tx.commit();
  }
  auto report = world.verify();
  EXPECT_TRUE(report.from_records);
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.committed, 5);
  EXPECT_EQ(report.applied, 5);
  EXPECT_FALSE(report.not_judged.empty());
  auto tx = world.warehouse().begin();
  tx.execute(
      "delete from settle_processed_events where message_id in "
      "(select message_id from settle_processed_events limit 1)");
  tx.commit();
  report = world.verify();
  EXPECT_EQ(report.lost, 1);
  EXPECT_EQ(report.findings.size(), 1u);
}

// Proves V2
TEST(records_checker, tells_pending_from_lost_and_says_what_it_cannot_judge) {
  temp_dir dir;
  order_world world(dir);
  world.consumer().run_once();  // its group is registered
  const auto emit = [&](const char* type) {
    auto tx = world.orders().begin();
    publish(tx, event{.topic = "orders", .type = type, .key = "k", .payload = "order-1|k|1"});
    tx.commit();
  };
  emit("order.placed");
  auto report = world.verify();
  EXPECT_TRUE(report.from_records);
  EXPECT_EQ(report.pending, 1) << "in the outbox";
  world.relay().run_once();
  EXPECT_EQ(world.verify().pending, 1) << "at the broker";
  emit("order.archived");  // nobody handles it
  auto stranger = world.broker().subscribe({.group = "stranger", .topics = {"orders"}});
  world.relay().run_once();
  const auto got = stranger->fetch(10);
  std::vector<delivery_tag> tags;
  for (const auto& one : got.deliveries) tags.push_back(one.tag);
  stranger->acknowledge(tags);
  report = world.verify();
  EXPECT_TRUE(report.clean());
  EXPECT_GE(report.not_judged.size(), 2u) << "the stranger's database was not given";
}

}  // namespace
}  // namespace settle
