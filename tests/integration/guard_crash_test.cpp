// Guards, quantities and reservations with a failure and a kill at every fault point, on both databases.
#include <algorithm>

#include "settle/error.hpp"
#include "settle/guard.hpp"
#include "settle/quantity.hpp"
#include "support/own_tables.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

struct crashing : test::own_tables {
  void SetUp() override {
    test::own_tables::SetUp();
    if (IsSkipped()) return;
    run("create table orders (id bigint primary key, state text not null)");
    run("create table seats (id bigint primary key, free bigint not null)");
  }

  void begin_anew() {
    run("delete from orders; delete from seats; delete from " + table("guard_history") + "; delete from " +
        table("quantity_log") + "; delete from " + table("reservations") + "; delete from " +
        table("reservation_lines") +
        "; insert into orders values (1, 'NEW'); "
        "insert into seats values (1, 10), (2, 10)");
    published_before = events();
  }

  std::int64_t events() { return number("select count(*) from " + table("outbox_events")); }

  // What a service does, each in a transaction; whoever repeats it from the start does nothing twice.
  void serve(database& on) {
    const auto transact = [&](const char* name, auto work) {
      auto tx = on.begin();
      work(tx);
      tx.commit(name);
    };
    transact("reserve", [&](transaction& tx) {
      EXPECT_TRUE(seats.reserve(tx, "cart", {{1, 2}, {2, 1}}, std::chrono::hours(24)));
    });
    transact("pay", [&](transaction& tx) {
      if (orders.move(tx, 1, "PAID").outcome != move_outcome::moved) return;
      EXPECT_EQ(seats.confirm(tx, "cart").status, reservation_status::confirmed);
      EXPECT_TRUE(seats.take(tx, 2, 3, {.reason = "paid with the order"}));
    });
    transact("change of mind", [&](transaction& tx) { seats.reserve(tx, "second", {{1, 1}}, 24h); });
    transact("cancel", [&](transaction& tx) {
      EXPECT_EQ(seats.cancel(tx, "second").status, reservation_status::cancelled);
    });
    transact("forgotten", [&](transaction& tx) { seats.reserve(tx, "third", {{1, 3}, {2, 3}}, 1min); });
    time.advance(2min);
    while (seats.release_expired(on) > 0) {
    }
  }

  std::int64_t free(int id) { return number("select free from seats where id = " + std::to_string(id)); }
  std::int64_t changes(int id) {
    return number("select cast(coalesce(sum(change), 0) as bigint) from " + table("quantity_log") +
                  " where item = '" + std::to_string(id) + "'");
  }

  const guard orders{{.machine = "order",
                      .table = "orders",
                      .states = {"NEW", "PAID"},
                      .initial = {"NEW"},
                      .ends = {"PAID"},
                      .transitions = {{"NEW", "PAID"}},
                      .topic = "orders"}};
  const quantity seats{{.resource = "seats", .table = "seats", .column = "free"}};
  std::int64_t published_before = 0;
};

// Proves G1, G5, V3
TEST_P(crashing, at_any_fault_point_loses_and_doubles_nothing) {
  const auto explored = testing::explore({
      .prepare = [&] { begin_anew(); },
      .run = [&](fault_points& faults) { serve(*open(&faults)); },
      .recover =
          [&] { serve(*open()); },  // not *db: what it published would leave a thread, and the next run forks
      .check =
          [&](const std::string& where) {
            EXPECT_EQ(free(1), 8) << where;
            EXPECT_EQ(free(2), 6) << where;
            EXPECT_EQ(changes(1), -2) << where;
            EXPECT_EQ(changes(2), -4) << where;
            EXPECT_EQ(number("select count(*) from " + table("guard_history")), 1) << where;
            EXPECT_EQ(events() - published_before, 1) << where;
            EXPECT_EQ(number("select count(*) from " + table("reservations") + " where status = 'HELD'"), 0)
                << where;
          },
  });
  for (const auto* point :
       {"guard.move.after", "quantity.change.before", "quantity.reserve.after", "quantity.confirm.after",
        "quantity.cancel.before", "quantity.release.before", "quantity.release.commit.after"})
    EXPECT_TRUE(std::ranges::count(explored.points, point)) << point;
}

INSTANTIATE_TEST_SUITE_P(databases, crashing, test::both_databases, test::database_name);

}  // namespace
}  // namespace settle
