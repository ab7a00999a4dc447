// What docs/guides/guards.md quotes: a state machine over a table, stock that cannot be oversold,
// reservations.
//
// Usage: guards <folder>      an existing, empty folder for the database file
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "settle/database.hpp"
#include "settle/guard.hpp"
#include "settle/quantity.hpp"
#include "settle/sqlite.hpp"

namespace {

using namespace std::chrono_literals;

// [snippet: declare_guard]
const settle::guard orders({
    .machine = "order",
    .table = "orders",
    .column = "status",
    .states = {"NEW", "PAID", "SHIPPED", "CANCELLED"},
    .initial = {"NEW"},
    .ends = {"SHIPPED", "CANCELLED"},
    .transitions = {{"NEW", "PAID", {"payments"}},
                    {"PAID", "SHIPPED", {"warehouse"}},
                    {"NEW", "CANCELLED"},
                    {"PAID", "CANCELLED", {"support"}}},
    .topic = "orders",  // each move is published there
});
// [end]

struct answer {
  int status;
  std::string text;
};

// [snippet: move]
answer paid(settle::database& db, const std::string& order_id, const std::string& charge_id) {
  auto tx = db.begin();
  const auto done =
      orders.move(tx, order_id, "PAID",
                  {.actor = "payments", .reason = "charge " + charge_id, .set = {{"charge_id", charge_id}}});
  switch (done.outcome) {
    case settle::move_outcome::moved:
      tx.commit();
      return {200, "paid"};
    case settle::move_outcome::unchanged:
      return {200, "paid before"};
    case settle::move_outcome::conflict:
      return {409, "the order is " + done.state};
    case settle::move_outcome::missing:
      return {404, "no such order"};
    case settle::move_outcome::forbidden:
      return {403, "not for you"};
  }
  throw std::logic_error("an outcome that is not there");
}
// [end]

// [snippet: declare_quantity]
const settle::quantity stock({.resource = "stock", .table = "products", .key = "sku", .column = "in_stock"});
// [end]

// [snippet: take]
answer sell(settle::database& db, const std::string& order_id, const std::string& sku) {
  auto tx = db.begin();
  const auto got = stock.take(tx, sku, 1, {.reason = "sold", .reference = order_id});
  if (!got) return {409, "only " + std::to_string(got.there) + " left"};
  // … the rest of the sale, in the same transaction
  tx.commit();
  return {200, "sold"};
}
// [end]

// [snippet: reserve]
answer check_out(settle::database& db, const std::string& cart_id) {
  auto tx = db.begin();
  const auto held = stock.reserve(tx, cart_id, {{"sku-1", 2}, {"sku-2", 1}}, 15min);
  if (!held) return {409, std::string(to_string(held.outcome))};
  tx.commit();
  return {200, "yours for a quarter of an hour"};
}

answer buy(settle::database& db, const std::string& cart_id) {
  auto tx = db.begin();
  const auto end = stock.confirm(tx, cart_id);
  if (end.status != settle::reservation_status::confirmed) return {410, std::string(to_string(end.status))};
  tx.commit();
  return {200, "bought"};
}
// [end]

void give_back_in_the_background(settle::database& db) {
  // [snippet: expiry]
  settle::reservation_expiry expiry(db, stock);
  settle::background loop(expiry);
  // [end]
}

// [snippet: check]
bool fit_to_start(settle::database& db) {
  const auto report = orders.check(db);  // throws if the table does not fit
  for (const auto& [state, rows] : report.undeclared)
    std::printf("%lld orders are in the state '%s', which nobody declared\n", static_cast<long long>(rows),
                state.c_str());
  return report.clean() && stock.check(db) == 0;
}
// [end]

bool is(const answer& got, int status) {
  std::printf("%d %s\n", got.status, got.text.c_str());
  return got.status == status;
}

int guards(const std::string& folder) {
  auto db = settle::sqlite::open(folder + "/shop.db");
  settle::migrate(*db);
  auto tx = db->begin();
  tx.execute("create table orders (id text primary key, status text not null, charge_id text)");
  tx.execute("create table products (sku text primary key, in_stock integer not null)");
  tx.execute("insert into orders (id, status) values ('o-1', 'NEW'), ('o-2', 'SHIPPED')");
  tx.execute("insert into products values ('sku-1', 3), ('sku-2', 1)");
  tx.commit();

  std::printf("%s", orders.mermaid().c_str());
  const bool right = fit_to_start(*db) && is(paid(*db, "o-1", "ch_1"), 200) &&
                     is(paid(*db, "o-1", "ch_1"), 200) && is(paid(*db, "o-2", "ch_2"), 409) &&
                     is(paid(*db, "o-3", "ch_3"), 404) && is(check_out(*db, "cart-1"), 200) &&
                     is(check_out(*db, "cart-1"), 200) && is(check_out(*db, "cart-2"), 409) &&
                     is(buy(*db, "cart-1"), 200) && is(buy(*db, "cart-2"), 410) &&
                     is(sell(*db, "o-1", "sku-1"), 200) && is(sell(*db, "o-1", "sku-1"), 409);
  give_back_in_the_background(*db);
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: guards <folder>\n");
    return 2;
  }
  try {
    return guards(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "guards: %s\n", e.what());
    return 1;
  }
}
