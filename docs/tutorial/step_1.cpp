// Tutorial, step 1 (1_an_event_with_your_row.md quotes all of it).
// [snippet: tutorial_step_1]
// The shop commits an order and its event in one transaction.
// Usage: step_1 FOLDER ORDER [crash]      crash: the program kills itself just before the commit
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "order_placed.hpp"
#include "settle/database.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"
#include "settle/verify.hpp"

namespace {

std::unique_ptr<settle::database> open_shop(const std::string& folder) {
  auto shop = settle::sqlite::open(folder + "/settle.db");
  settle::migrate(*shop);  // Settle's tables, beside yours; at every start
  auto tx = shop->begin();
  tx.execute("create table if not exists orders (id text primary key, total_cents integer not null)");
  tx.commit();
  return shop;
}

void place_order(settle::database& shop, const order_placed& order, bool crash) {
  auto tx = shop.begin();
  tx.execute("insert into orders (id, total_cents) values ($1, $2)", {order.order_id, order.total_cents});
  const auto id = settle::publish(tx, order);
  settle::note_committed(tx,
                         {.topic = "orders", .key = order.order_id, .subject = order.order_id, .event = id});
  if (crash) std::raise(SIGKILL);
  tx.commit();  // the row and the event, or neither
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: step_1 FOLDER ORDER [crash]\n");
    return 2;
  }
  try {
    const auto shop = open_shop(argv[1]);
    place_order(*shop, {argv[2], 4200}, argc > 3 && std::string(argv[3]) == "crash");
    std::printf("%s is placed, and its event is on its way\n", argv[2]);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "step_1: %s\n", e.what());
    return 1;
  }
}
// [end]
