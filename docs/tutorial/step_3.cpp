// Tutorial, step 3 (3_completed_or_undone.md quotes all of it).
// [snippet: tutorial_step_3]
// Runs the shop's sagas for six seconds.
// Usage: step_3 FOLDER [order ID ITEM | return ID]      without: goes on with those that are there
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "settle/saga.hpp"
#include "settle/service.hpp"
#include "settle/sqlite.hpp"
#include "shop_flows.hpp"

namespace {

void make_tables(settle::database& db) {
  settle::migrate(db);
  auto tx = db.begin();
  tx.execute("create table if not exists reservations (order_id text not null, item text not null)");
  tx.execute("create table if not exists parcels (order_id text not null)");
  tx.execute("create table if not exists refunds (return_id text not null)");
  tx.commit();
}

void run(const std::vector<std::string>& words) {
  const auto db = settle::sqlite::open(words[0] + "/settle.db");
  make_tables(*db);

  settle::saga_host host(*db, {.name = "shop"});
  host.add(place_order).add(return_processing);
  host.on<pickup_confirmed>([](const pickup_confirmed& e) { return e.return_id; });

  if (words.size() == 4 && words[1] == "order")
    host.start(place_order, words[2], order{words[2], words[3]});
  else if (words.size() == 3 && words[1] == "return")
    host.start(return_processing, words[2], words[2]);

  {
    const settle::background loop(host);  // a thread; it stops when it goes out of scope
    std::this_thread::sleep_for(6s);      // a service would go on
  }
  const auto done = host.counts();
  std::printf("%lld completed, %lld undone\n", static_cast<long long>(done.completed),
              static_cast<long long>(done.compensated));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: step_3 FOLDER [order ID ITEM | return ID]\n");
    return 2;
  }
  try {
    run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "step_3: %s\n", e.what());
    return 1;
  }
}
// [end]
