// State machines over tables of the user's, on both databases.
#include "settle/guard.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>

#include "settle/error.hpp"
#include "support/expect_error.hpp"
#include "support/own_tables.hpp"

namespace settle {

inline void PrintTo(move_outcome of, std::ostream* out) { *out << to_string(of); }

namespace {

using test::code_of;
using namespace std::chrono_literals;
using lines = std::vector<std::string>;

guard_options order_options() {
  return {.machine = "order",
          .table = "orders",
          .column = "status",
          .states = {"NEW", "PAID", "SHIPPED", "CANCELLED"},
          .initial = {"NEW"},
          .ends = {"SHIPPED", "CANCELLED"},
          .transitions = {{"NEW", "PAID", {"payments"}},
                          {"PAID", "SHIPPED", {"warehouse"}},
                          {"NEW", "CANCELLED"},
                          {"PAID", "CANCELLED", {"support"}}}};
}

struct guarded : test::own_tables {
  void SetUp() override {
    test::own_tables::SetUp();
    if (IsSkipped()) return;
    run("create table orders (id bigint primary key, status text, paid_by text, paid_cents bigint)");
    run("insert into orders (id, status) values (1, 'NEW'), (2, 'PAID'), (3, 'SHIPPED')");
  }

  move_result move(const value& id, std::string_view to,
                   const move_options& options = {.actor = "payments"}) {
    return in_transaction([&](transaction& tx) { return orders.move(tx, id, to, options); });
  }

  std::string state(int id) {
    return rows("select status from orders where id = " + std::to_string(id)).at(0);
  }

  lines history() {
    return rows(
        "select machine || ' ' || entity || ' ' || from_state || ' ' || to_state || ' ' || actor || ' ' || "
        "reason "
        "from " +
        table("guard_history") + " order by id");
  }

  guard orders{order_options()};
};

// Proves G1
TEST_P(guarded, a_row_moves_once_and_says_so_when_asked_again) {
  const auto first = move(1, "PAID", {.actor = "payments", .reason = "charge 17"});
  EXPECT_EQ(first.outcome, move_outcome::moved);
  EXPECT_EQ(first.from, "NEW");
  EXPECT_EQ(first.state, "PAID");
  EXPECT_TRUE(first.in_place());

  const auto again = move(1, "PAID", {.actor = "payments", .reason = "charge 17"});
  EXPECT_EQ(again.outcome, move_outcome::unchanged);
  EXPECT_EQ(again.state, "PAID");
  EXPECT_TRUE(again.in_place());

  EXPECT_EQ(state(1), "PAID");
  EXPECT_EQ(history(), lines{"order 1 NEW PAID payments charge 17"});
  EXPECT_EQ(counters.value("settle_guard_moves_total", {{"machine", "order"}, {"outcome", "moved"}}), 1);
  EXPECT_EQ(counters.value("settle_guard_moves_total", {{"machine", "order"}, {"outcome", "unchanged"}}), 1);
}

// Proves G1
TEST_P(guarded, a_wrong_source_state_is_a_conflict_that_names_the_current_one) {
  const auto done = move(3, "PAID");
  EXPECT_EQ(done.outcome, move_outcome::conflict);
  EXPECT_EQ(done.state, "SHIPPED");
  EXPECT_FALSE(done.in_place());
  EXPECT_EQ(state(3), "SHIPPED");
  EXPECT_TRUE(history().empty());
}

// Proves G1
TEST_P(guarded, a_row_that_is_not_there_is_missing) {
  EXPECT_EQ(move(99, "PAID").outcome, move_outcome::missing);
  EXPECT_TRUE(history().empty());
}

// Proves G1
TEST_P(guarded, only_those_who_may_move_it) {
  const auto denied = move(1, "PAID", {.actor = "eve", .roles = {"guest"}});
  EXPECT_EQ(denied.outcome, move_outcome::forbidden);
  EXPECT_EQ(denied.state, "NEW");
  EXPECT_EQ(state(1), "NEW");
  EXPECT_EQ(move(2, "CANCELLED", {.actor = "ann", .roles = {"support"}}).outcome, move_outcome::moved);
  EXPECT_EQ(move(1, "CANCELLED", {}).outcome, move_outcome::moved);
  EXPECT_EQ(history(), (lines{"order 2 PAID CANCELLED ann ", "order 1 NEW CANCELLED  "}));
}

// Proves G1
TEST_P(guarded, what_rolls_back_has_not_moved) {
  auto options = order_options();
  options.topic = "orders";
  orders = guard(options);
  {
    auto tx = db->begin();
    EXPECT_EQ(orders.move(tx, 1, "PAID", {.actor = "payments"}).outcome, move_outcome::moved);
  }
  EXPECT_EQ(state(1), "NEW");
  EXPECT_TRUE(history().empty());
  EXPECT_TRUE(published().empty());
}

// Proves G1
TEST_P(guarded, the_event_commits_with_the_move_and_the_history_knows_it) {
  auto options = order_options();
  options.topic = "orders";
  orders = guard(options);
  const auto done = move(1, "PAID", {.actor = "payments", .reason = "say \"yes\""});
  move(1, "PAID");
  move(3, "PAID");
  const auto seen = published();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].id, done.event->text());
  EXPECT_EQ(seen[0].type, "order.PAID");
  EXPECT_EQ(seen[0].topic, "orders");
  EXPECT_EQ(seen[0].key, "1");
  EXPECT_EQ(seen[0].subject, "order/1");
  EXPECT_EQ(
      seen[0].payload,
      R"({"actor":"payments","at":"2023-11-14T22:13:20.000000Z","from":"NEW","id":"1","machine":"order",)"
      R"("reason":"say \"yes\"","to":"PAID"})");
  auto tx = db->read();
  const auto steps = orders.history(tx, 1);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].event, done.event);
  EXPECT_EQ(steps[0].from, "NEW");
  EXPECT_EQ(steps[0].to, "PAID");
  EXPECT_EQ(steps[0].at, time.now());
}

TEST_P(guarded, the_event_can_be_made_by_the_caller) {
  auto options = order_options();
  options.make_event = [](const guard_step& made) {
    return event{.topic = "status", .type = made.from + "-" + made.to, .key = "order-" + made.entity};
  };
  orders = guard(options);
  move(1, "PAID");
  const auto seen = published();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].topic + " " + seen[0].type + " " + seen[0].key, "status NEW-PAID order-1");
}

// Proves G1
TEST_P(guarded, a_move_without_its_event_has_not_moved) {
  const std::function<event(const guard_step&)> bad[] = {
      [](const guard_step&) -> event { throw std::runtime_error("no event"); },
      [](const guard_step& made) { return event{.topic = "", .type = "paid", .key = made.entity}; }};
  for (const auto& make : bad) {
    auto options = order_options();
    options.make_event = make;
    const guard failing(options);
    auto tx = db->begin();
    tx.execute("update orders set paid_by = 'before' where id = 3");
    EXPECT_ANY_THROW(failing.move(tx, 1, "PAID", {.actor = "payments"}));
    EXPECT_EQ(failing.move(tx, 3, "PAID", {.actor = "payments"}).outcome, move_outcome::conflict)
        << "the transaction is as good as before";
    tx.commit();
    EXPECT_EQ(state(1), "NEW");
    EXPECT_TRUE(history().empty());
    EXPECT_EQ(number("select count(*) from orders where paid_by = 'before'"), 1);
  }
}

// On PostgreSQL the whole transaction is lost then. Proves G1
TEST_P(guarded, a_move_that_its_history_refuses_has_not_moved) {
  run(on_postgres()
          ? "create function closed() returns trigger language plpgsql as $$ begin raise exception 'closed'; "
            "end $$; create trigger closed before insert on settle.guard_history for each row execute "
            "function closed()"
          : "create trigger closed before insert on settle_guard_history begin select raise(abort, "
            "'closed'); end");
  auto tx = db->begin();
  EXPECT_ANY_THROW(orders.move(tx, 1, "PAID", {.actor = "payments"}));
  EXPECT_EQ(code_of([&] { tx.commit(); }).has_value(), on_postgres());
  EXPECT_EQ(state(1), "NEW");
}

// Proves G1
TEST_P(guarded, other_columns_are_set_with_the_state_or_not_at_all) {
  const move_options with{.actor = "payments",
                          .set = {{"paid_by", "x'; drop table orders; --"}, {"paid_cents", 4200}}};
  EXPECT_EQ(move(1, "PAID", with).outcome, move_outcome::moved);
  EXPECT_EQ(move(3, "PAID", with).outcome, move_outcome::conflict);
  EXPECT_EQ(rows("select paid_by from orders where paid_cents = 4200"), lines{"x'; drop table orders; --"});
  EXPECT_EQ(history().size(), 1u);
  for (const auto* column : {"status", "id"})
    EXPECT_EQ(code_of([&] { move(2, "SHIPPED", {.set = {{column, "x"}}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { move(2, "SHIPPED", {.set = {{"paid_by", 1}, {"paid_by", 2}}}); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { move(2, "SHIPPED", {.set = {{"", 1}}}); }), errc::invalid_name);
  EXPECT_EQ(code_of([&] { move(2, "SHIPPED", {.actor = "warehouse", .set = {{"no such", 1}}}); }),
            errc::statement_failed);
}

// Proves G1
TEST_P(guarded, odd_names_of_tables_and_columns_are_only_names) {
  run(R"(create table "Odd "" $1 table" ("the key" text primary key, "Sta""te" text))");
  run(R"(insert into "Odd "" $1 table" values ('k', 'NEW'))");
  auto options = order_options();
  options.table = R"(Odd " $1 table)";
  options.key = "the key";
  options.column = R"(Sta"te)";
  orders = guard(options);
  EXPECT_EQ(move("k", "PAID").outcome, move_outcome::moved);
  EXPECT_EQ(move("k", "PAID").outcome, move_outcome::unchanged);
  EXPECT_TRUE(orders.check(*db).clean());
  EXPECT_EQ(rows(R"(select "Sta""te" from "Odd "" $1 table")"), lines{"PAID"});
}

TEST_P(guarded, two_machines_over_one_database_do_not_mix) {
  run("create table parcels (id bigint primary key, status text)");
  run("insert into parcels values (1, 'PACKED')");
  const guard parcels({.machine = "parcel",
                       .table = "parcels",
                       .column = "status",
                       .states = {"PACKED", "SENT"},
                       .initial = {"PACKED"},
                       .ends = {"SENT"},
                       .transitions = {{"PACKED", "SENT"}}});
  in_transaction([&](transaction& tx) {
    EXPECT_EQ(orders.move(tx, 1, "PAID", {.actor = "payments"}).outcome, move_outcome::moved);
    return parcels.move(tx, 1, "SENT").outcome;
  });
  EXPECT_EQ(state(1), "PAID");
  EXPECT_EQ(rows("select status from parcels"), lines{"SENT"});
  auto tx = db->read();
  EXPECT_EQ(orders.history(tx, 1).size(), 1u);
  EXPECT_EQ(parcels.history(tx, 1).at(0).to, "SENT");
}

// Proves G1
TEST_P(guarded, a_check_at_start_finds_what_does_not_fit) {
  EXPECT_TRUE(orders.check(*db).clean());
  run("insert into orders (id, status) values (10, 'LOST'), (11, 'LOST'), (12, 'ODD'), (13, null)");
  const auto report = orders.check(*db);
  ASSERT_EQ(report.undeclared.size(), 3u);
  EXPECT_EQ(report.undeclared[0].state, "LOST");
  EXPECT_EQ(report.undeclared[0].rows, 2);
  const auto refused = [&](auto change) {
    auto options = order_options();
    change(options);
    return code_of([&] { guard(options).check(*db); });
  };
  EXPECT_EQ(refused([](auto& o) { o.table = "ordres"; }), errc::invalid_argument);
  EXPECT_EQ(refused([](auto& o) { o.column = "state"; }), errc::invalid_argument);
  EXPECT_EQ(refused([](auto& o) { o.key = "key"; }), errc::invalid_argument);
}

TEST_P(guarded, a_row_without_a_state_is_in_conflict_with_everything) {
  run("update orders set status = null where id = 1");
  const auto done = move(1, "PAID");
  EXPECT_EQ(done.outcome, move_outcome::conflict);
  EXPECT_EQ(done.state, "");
}

TEST_P(guarded, what_should_not_have_been_asked_is_refused_before_anything_is_written) {
  try {
    move(1, "PIAD");
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_NE(std::string(e.what()).find("did you mean 'PAID'?"), std::string::npos) << e.what();
  }
  EXPECT_EQ(code_of([&] { move(blob{"1"}, "PAID"); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { move(1, "PAID", {.actor = "a\nb"}); }), errc::invalid_name);
  EXPECT_EQ(code_of([&] { move(1, "PAID", {.reason = std::string(1001, 'r')}); }), errc::invalid_argument);
}

// Proves G1
TEST_P(guarded, a_key_that_is_there_twice_moves_nothing) {
  run("create table doubles (id bigint, status text)");
  run("insert into doubles values (1, 'NEW'), (1, 'NEW')");
  auto options = order_options();
  options.table = "doubles";
  orders = guard(options);
  auto tx = db->begin();
  EXPECT_EQ(code_of([&] { orders.move(tx, 1, "PAID", {.actor = "payments"}); }), errc::invalid_argument);
  tx.commit();
  EXPECT_EQ(number("select count(*) from doubles where status = 'NEW'"), 2);
  EXPECT_TRUE(history().empty());
}

TEST_P(guarded, a_trigger_that_keeps_the_row_as_it_is_is_not_taken_for_a_move) {
  run(on_postgres()
          ? "create function keep() returns trigger language plpgsql as $$ begin return null; end $$; "
            "create trigger keep before update on orders for each row execute function keep()"
          : "create trigger keep before update on orders begin select raise(ignore); end");
  auto tx = db->begin();
  EXPECT_EQ(code_of([&] { orders.move(tx, 1, "PAID", {.actor = "payments"}); }), errc::constraint_violated);
}

// Proves G1
TEST_P(guarded, of_many_at_once_exactly_one_moves_the_row) {
  constexpr int threads = 16, rounds = 5;
  const auto many = open(nullptr, threads);
  for (int round = 1; round <= rounds; ++round) {
    run("update orders set status = 'NEW' where id = 1");
    std::atomic<int> paid = 0, cancelled = 0, unchanged = 0, conflicts = 0;
    std::barrier start(threads);
    {
      std::vector<std::jthread> all;
      for (int i = 0; i < threads; ++i)
        all.emplace_back([&, i] {
          start.arrive_and_wait();
          auto tx = many->begin();
          const bool pays = i % 2 == 0;
          const auto done = orders.move(tx, 1, pays ? "PAID" : "CANCELLED", {.actor = "payments"});
          tx.commit();
          if (done.outcome == move_outcome::moved) ++(pays ? paid : cancelled);
          if (done.outcome == move_outcome::unchanged) ++unchanged;
          if (done.outcome == move_outcome::conflict || done.outcome == move_outcome::forbidden) ++conflicts;
        });
    }
    EXPECT_EQ(paid + cancelled, 1);
    EXPECT_EQ(paid + cancelled + unchanged + conflicts, threads);
    EXPECT_EQ(unchanged, threads / 2 - 1);
    EXPECT_EQ(history().size(), static_cast<std::size_t>(round));
    EXPECT_EQ(state(1), paid == 1 ? "PAID" : "CANCELLED");
  }
}

INSTANTIATE_TEST_SUITE_P(databases, guarded, test::both_databases, test::database_name);

// What only PostgreSQL has.
struct guarded_on_postgres : guarded {};
INSTANTIATE_TEST_SUITE_P(databases, guarded_on_postgres, ::testing::Values(dialect::postgres),
                         test::database_name);

// Proves G1
TEST_P(guarded_on_postgres, enums_and_uuids_are_as_good_as_texts) {
  run("create schema shop; create type shop.phase as enum ('NEW', 'PAID', 'SHIPPED', 'CANCELLED')");
  run("create table shop.orders (id uuid primary key, status shop.phase not null, paid_at timestamptz)");
  const auto id = *uuid::parse("0192f0c0-0000-7000-8000-000000000001");
  run("insert into shop.orders values ('" + id.text() + "', 'NEW')");
  auto options = order_options();
  options.table = "shop.orders";
  const guard typed(options);
  EXPECT_TRUE(typed.check(*db).clean());
  const auto pay = [&] {
    return in_transaction([&](transaction& tx) {
      return typed.move(tx, id, "PAID", {.actor = "payments", .set = {{"paid_at", "2026-01-01T00:00:00Z"}}})
          .outcome;
    });
  };
  EXPECT_EQ(pay(), move_outcome::moved);
  EXPECT_EQ(pay(), move_outcome::unchanged);
  EXPECT_EQ(rows("select entity from settle.guard_history"), lines{id.text()});

  run("alter type shop.phase rename value 'SHIPPED' to 'GONE'");
  EXPECT_EQ(code_of([&] { typed.check(*db); }), errc::invalid_argument);
}

// Proves G1
TEST_P(guarded_on_postgres, a_snapshot_that_is_too_old_is_a_retryable_error) {
  for (const auto* level : {"repeatable read", "serializable"}) {
    run("update orders set status = 'NEW' where id = 1");
    auto tx = db->begin();
    tx.execute("set transaction isolation level " + std::string(level));
    tx.execute("select 1 from orders");
    EXPECT_EQ(move(1, "PAID").outcome, move_outcome::moved);
    EXPECT_EQ(code_of([&] { orders.move(tx, 1, "CANCELLED"); }), errc::store_busy) << level;
  }
}

// Proves G1
TEST_P(guarded_on_postgres, works_in_a_transaction_of_the_users_own_connection) {
  const std::unique_ptr<PGconn, void (*)(PGconn*)> mine(PQconnectdb(server->conninfo().c_str()), PQfinish);
  PQclear(PQexec(mine.get(), "begin"));
  {
    postgres::joined_transaction tx(mine.get());
    EXPECT_EQ(orders.move(tx, 1, "PAID", {.actor = "payments"}).outcome, move_outcome::moved);
    EXPECT_EQ(orders.move(tx, 1, "PAID", {.actor = "payments"}).outcome, move_outcome::unchanged);
  }
  EXPECT_EQ(state(1), "NEW");
  PQclear(PQexec(mine.get(), "commit"));
  EXPECT_EQ(state(1), "PAID");
  EXPECT_EQ(history().size(), 1u);
}

// Proves G1
TEST_P(guarded_on_postgres, a_refusal_stays_true_until_the_transaction_ends) {
  auto tx = db->begin();
  EXPECT_EQ(orders.move(tx, 1, "SHIPPED", {.actor = "warehouse"}).outcome, move_outcome::conflict);
  const environment env{.log = &log, .counters = &counters};
  const auto hasty = postgres::open(server->conninfo(), {.env = env, .busy_timeout = 100ms});
  EXPECT_EQ(code_of([&] {
              auto other = hasty->begin();
              orders.move(other, 1, "PAID", {.actor = "payments"});
            }),
            errc::store_busy);
  // Whoever only refers to the row does not wait.
  auto other = hasty->begin();
  EXPECT_EQ(other.execute("select 1 from orders where id = 1 for key share").size(), 1u);
}

}  // namespace
}  // namespace settle
