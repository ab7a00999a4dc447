// First steps with Settle: an order and its event in one transaction, a relay, and a consumer that applies
// the event once. The README quotes the marked parts; tools/check_snippets compares them.
//
// Usage: first_steps <folder>      an existing, empty folder for the three database files
#include <boost/describe.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "settle/adapter/boost_json.hpp"
#include "settle/codec.hpp"
#include "settle/consume.hpp"
#include "settle/database.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/service.hpp"
#include "settle/sqlite.hpp"

// [snippet: event]
struct order_placed {
  std::string order_id;
  std::int64_t total_cents = 0;
};
BOOST_DESCRIBE_STRUCT(order_placed, (), (order_id, total_cents))

template <>
struct settle::codec<order_placed> : settle::json_codec<order_placed> {
  static constexpr std::string_view topic = "orders";
  static constexpr std::string_view type = "order.placed";
  static std::string key(const order_placed& e) { return e.order_id; }  // order is kept per key
};
// [end]

namespace {

using namespace std::chrono_literals;

void create_table(settle::database& db, const char* sql) {
  auto tx = db.begin();
  tx.execute(sql);
  tx.commit();
}

// Sleeps on the database's commits until the consumer has seen this many deliveries; false after 30 s.
bool wait_for(const settle::consumer& consumer, settle::database& db, std::int64_t deliveries) {
  const auto commits = db.watch();
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (std::chrono::steady_clock::now() < deadline) {
    const auto counts = consumer.counts();
    if (counts.applied + counts.duplicates >= deliveries) return true;
    commits->wait(100ms, {});
  }
  return false;
}

int first_steps(const std::string& folder) {
  // [snippet: open]
  auto shop = settle::sqlite::open(folder + "/shop.db");
  auto warehouse = settle::sqlite::open(folder + "/warehouse.db");
  auto broker = settle::sqlite::open_broker(folder + "/broker.db");
  settle::migrate(*shop);  // Settle's tables, beside your own
  settle::migrate(*warehouse);
  // [end]
  create_table(*shop, "create table orders (id text primary key, total_cents integer not null)");
  create_table(*warehouse, "create table shipments (id integer primary key, order_id text not null)");

  // [snippet: publish]
  const order_placed order{"order-1", 4200};
  auto tx = shop->begin();
  tx.execute("insert into orders (id, total_cents) values ($1, $2)", {order.order_id, order.total_cents});
  const auto id = settle::publish(tx, order);
  tx.commit();  // the row and the event, or neither
  // [end]

  // The same event once more, as a careless retry would send it: a duplicate with the same id.
  auto again = shop->begin();
  settle::publish(again, order, {.id = id});
  again.commit();

  // [snippet: relay]
  settle::relay relay(*shop, broker->publishing());
  settle::background relaying(relay);  // a thread of its own; stops when it goes out of scope
  // [end]

  // [snippet: consumer]
  settle::consumer consumer(*warehouse, *broker, {.name = "warehouse"});
  consumer.on<order_placed>([](const order_placed& e, settle::transaction& tx) {
    tx.execute("insert into shipments (order_id) values ($1)", {e.order_id});
  });
  settle::background consuming(consumer);
  // [end]

  const bool delivered = wait_for(consumer, *warehouse, 2);
  consuming.stop();
  relaying.stop();

  auto look = warehouse->read();
  const auto shipments = look.execute("select count(*) from shipments")[0][0].integer();
  const auto counts = consumer.counts();
  std::printf("%lld shipment, %lld applied, %lld duplicate skipped\n", static_cast<long long>(shipments),
              static_cast<long long>(counts.applied), static_cast<long long>(counts.duplicates));
  return delivered && shipments == 1 && counts.applied == 1 && counts.duplicates == 1 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: first_steps <folder>\n");
    return 2;
  }
  try {
    return first_steps(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "first_steps: %s\n", e.what());
    return 1;
  }
}
