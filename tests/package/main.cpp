// Commits a row and an event, relays the event twice and applies it once.
//
// Usage: ship_once <folder>      an existing, empty folder for the database files
#include <boost/describe.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <settle/adapter/boost_json.hpp>
#include <settle/consume.hpp>
#include <settle/error.hpp>
#include <settle/publish.hpp>
#include <settle/relay.hpp>
#include <settle/sqlite.hpp>
#include <string>
#include <string_view>

struct order_placed {
  std::string order_id;
};
BOOST_DESCRIBE_STRUCT(order_placed, (), (order_id))

template <>
struct settle::codec<order_placed> : settle::json_codec<order_placed> {
  static constexpr std::string_view topic = "orders";
  static constexpr std::string_view type = "order.placed";
  static std::string key(const order_placed& e) { return e.order_id; }
};

namespace {

// An error that is thrown inside the library must be caught by its type outside of it.
bool refuses_a_bad_topic(settle::database& db) {
  auto tx = db.begin();
  try {
    settle::publish(tx, settle::event{.topic = "", .type = "t", .key = ""});
  } catch (const settle::error& e) {
    return e.code() == settle::errc::invalid_name;
  }
  return false;
}

std::int64_t count(settle::database& db, std::string_view sql) {
  auto look = db.read();
  return look.execute(sql)[0][0].integer();
}

bool ship_once(const std::string& folder) {
  auto shop = settle::sqlite::open(folder + "/shop.db");
  auto broker = settle::sqlite::open_broker(folder + "/broker.db");
  settle::migrate(*shop);

  auto tx = shop->begin();
  tx.execute("create table orders (id text primary key)");
  tx.execute("create table shipments (order_id text not null)");
  tx.execute("insert into orders (id) values ($1)", {"order-1"});
  const auto id = settle::publish(tx, order_placed{"order-1"});
  settle::publish(tx, order_placed{"order-1"}, {.id = id});  // a copy, as a careless retry would send it
  tx.commit();

  settle::relay relay(*shop, broker->publishing());
  while (relay.run_once()) {
  }

  settle::consumer warehouse(*shop, *broker, {.name = "warehouse"});
  warehouse.on<order_placed>([](const order_placed& e, settle::transaction& in) {
    in.execute("insert into shipments (order_id) values ($1)", {e.order_id});
  });
  while (warehouse.run_once()) {
  }

  const auto counts = warehouse.counts();
  std::printf("%lld applied, %lld duplicate skipped\n", static_cast<long long>(counts.applied),
              static_cast<long long>(counts.duplicates));
  return counts.applied == 1 && counts.duplicates == 1 &&
         count(*shop, "select count(*) from shipments") == 1 && refuses_a_bad_topic(*shop);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: ship_once <folder>\n");
    return 2;
  }
  try {
    return ship_once(argv[1]) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ship_once: %s\n", e.what());
    return 1;
  }
}
