// What docs/guides/failures.md quotes: classes of failures, effects outside, handlers for whole batches.
//
// Usage: failures <folder>      an existing, empty folder for the database files
#include <boost/describe.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "settle/adapter/boost_json.hpp"
#include "settle/codec.hpp"
#include "settle/consume.hpp"
#include "settle/database.hpp"
#include "settle/dead_letter.hpp"
#include "settle/failure.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"

struct order_placed {
  std::string order_id;
  std::int64_t amount_cents = 0;
};
BOOST_DESCRIBE_STRUCT(order_placed, (), (order_id, amount_cents))

template <>
struct settle::codec<order_placed> : settle::json_codec<order_placed> {
  static constexpr std::string_view topic = "orders";
  static constexpr std::string_view type = "order.placed";
  static std::string key(const order_placed& e) { return e.order_id; }
};

namespace {

struct card_expired : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct http_answer {
  int status = 200;
  std::string text = {};
};

// A bank that knows one customer who cannot pay, and never charges one key twice.
http_answer ask_the_bank(const order_placed& order, const std::string& idempotency_key) {
  if (idempotency_key.empty()) return {400, "no key"};
  return order.amount_cents > 1'000'000 ? http_answer{402, "not that much"} : http_answer{};
}

// [snippet: classify_http]
void charge(const http_answer& answer) {
  if (answer.status >= 300)
    throw settle::handler_failed(settle::class_of_http_status(answer.status), "the bank says " + answer.text);
}
// [end]

// [snippet: classify_own]
settle::consumer_options options() {
  settle::consumer_options with{.name = "billing"};
  with.classify = [](const std::exception& e,
                     const settle::message&) -> std::optional<settle::failure_class> {
    if (dynamic_cast<const card_expired*>(&e) != nullptr) return settle::failure_class::permanent;
    return std::nullopt;  // as usual
  };
  return with;
}
// [end]

void add_outside_handler(settle::consumer& billing) {
  // [snippet: outside_effects]
  billing.on<order_placed>(
      [](const order_placed& order, settle::transaction& tx, const settle::message& m) {
        const auto answer = ask_the_bank(order, m.id);  // the id is the idempotency key
        charge(answer);
        tx.execute("insert into charges (order_id, amount_cents) values ($1, $2)",
                   {order.order_id, order.amount_cents});
      },
      {.effects = settle::handler_effects::outside});
  // [end]
}

void add_batch_handler(settle::consumer& billing) {
  // [snippet: batch_handler]
  billing.on_batch<order_placed>([](std::span<const order_placed> orders, settle::transaction& tx) {
    std::int64_t total = 0;
    for (const auto& order : orders) total += order.amount_cents;
    tx.execute("update totals set orders = orders + $1, amount_cents = amount_cents + $2",
               {static_cast<std::int64_t>(orders.size()), total});
  });
  // [end]
}

std::int64_t number(settle::database& db, std::string_view sql) {
  return db.read().execute(sql)[0][0].integer();
}

int failures(const std::string& folder) {
  auto db = settle::sqlite::open(folder + "/billing.db");
  auto broker = settle::sqlite::open_broker(folder + "/broker.db");
  settle::migrate(*db);
  auto tx = db->begin();
  tx.execute("create table charges (order_id text primary key, amount_cents integer not null)");
  tx.execute("create table totals (orders integer not null, amount_cents integer not null)");
  tx.execute("insert into totals values (0, 0)");
  settle::publish(tx, order_placed{"order-1", 4200});
  settle::publish(tx, order_placed{"order-2", 2'000'000});
  settle::publish(tx, order_placed{"order-3", 100});
  tx.commit();

  settle::consumer billing(*db, *broker, options());
  add_outside_handler(billing);
  settle::consumer counting(*db, *broker, {.name = "counting"});
  add_batch_handler(counting);
  settle::relay relay(*db, broker->publishing());
  while (relay.run_once() || billing.run_once() || counting.run_once()) {
  }
  const auto letters = settle::dead_letters(*db);
  const bool right = number(*db, "select count(*) from charges") == 2 &&
                     number(*db, "select orders from totals") == 3 && letters.size() == 1 &&
                     letters[0].reason == settle::dead_letter_reason::permanent;
  for (const auto& one : letters) std::printf("%s: %s\n", one.what.id.c_str(), one.error.c_str());
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: failures <folder>\n");
    return 2;
  }
  try {
    return failures(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "failures: %s\n", e.what());
    return 1;
  }
}
