// Tutorial, step 2 (2_applied_once.md quotes all of it).
// [snippet: tutorial_step_2]
// A relay brings the shop's events to the broker, and the warehouse applies each once.
// Usage: step_2 FOLDER [ORDERS]      ends when so many orders are shipped; without: runs until it is stopped
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "order_placed.hpp"
#include "settle/consume.hpp"
#include "settle/database.hpp"
#include "settle/relay.hpp"
#include "settle/service.hpp"
#include "settle/sqlite.hpp"
#include "settle/verify.hpp"

namespace {

using namespace std::chrono_literals;

std::unique_ptr<settle::database> open_warehouse(const std::string& folder) {
  auto warehouse = settle::sqlite::open(folder + "/warehouse.db");
  settle::migrate(*warehouse);
  auto tx = warehouse->begin();
  tx.execute("create table if not exists shipments (id integer primary key, order_id text not null)");
  tx.commit();
  return warehouse;
}

void ship(const order_placed& order, settle::transaction& tx) {
  std::printf("shipping %s\n", order.order_id.c_str());
  std::fflush(stdout);
  tx.execute("insert into shipments (order_id) values ($1)", {order.order_id});
  settle::note_applied(tx, "warehouse",
                       {.topic = "orders", .key = order.order_id, .subject = order.order_id});
  std::this_thread::sleep_for(200ms);  // real work is slow, and gives you the time to kill it
}

std::int64_t count_shipments(settle::database& warehouse) {
  auto look = warehouse.read();
  return look.execute("select count(*) from shipments")[0][0].integer();
}

void run(const std::string& folder, std::int64_t orders) {
  const auto warehouse = open_warehouse(folder);
  const auto shop = settle::sqlite::open(folder + "/settle.db");
  const auto broker = settle::sqlite::open_broker(folder + "/broker.db", {.lease_ttl = 2s});

  settle::relay relay(*shop, broker->publishing(), {.lease_ttl = 2s});
  settle::consumer consumer(*warehouse, *broker, {.name = "warehouse", .batch_max = 2});
  consumer.on<order_placed>(ship);

  const settle::background relaying(relay);  // a thread each; they stop when they go out of scope
  const settle::background consuming(consumer);

  const auto commits = warehouse->watch();  // wakes when anybody has committed to the warehouse's file
  while (count_shipments(*warehouse) < orders) commits->wait(500ms, {});
  std::printf("%lld orders are shipped\n", static_cast<long long>(count_shipments(*warehouse)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: step_2 FOLDER [ORDERS]\n");
    return 2;
  }
  try {
    run(argv[1], argc > 2 ? std::stoll(argv[2]) : INT64_MAX);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "step_2: %s\n", e.what());
    return 1;
  }
}
// [end]
