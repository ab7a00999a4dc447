// What docs/guides/http_steps.md quotes: a saga whose steps are HTTP requests, the service that they ask, and
// the client alone.
//
// Usage: http_steps <folder>      an existing, empty folder for the database files
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "settle/http_client.hpp"
#include "settle/http_server.hpp"
#include "settle/http_step.hpp"
#include "settle/saga.hpp"
#include "settle/sqlite.hpp"

namespace {

namespace http = settle::http;

struct order {
  std::string id;
  std::int64_t cents = 0;
};

}  // namespace

// [snippet: http_steps_codec]
template <>
struct settle::codec<order> {
  static std::string encode(const order& o) { return o.id + " " + std::to_string(o.cents); }
  static order decode(std::string_view text) {
    const auto blank = text.find(' ');
    return {std::string(text.substr(0, blank)), std::stoll(std::string(text.substr(blank + 1)))};
  }
};
// [end]

namespace {

void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("this does not hold: ") + what);
}

// [snippet: http_steps_participant]
http::router bank_routes(settle::database& books) {
  http::router routes;
  routes.post("/charges",
              http::participant(books, [](const http::request& asked, const settle::saga_call& call,
                                          settle::transaction& tx) {
                const auto o = settle::codec<order>::decode(asked.body);
                if (call.op == settle::saga_op::undo) {
                  tx.execute("delete from charges where order_id = $1", {o.id});
                  return http::text(200, "text/plain", "refunded");
                }
                if (o.cents > 100'000)
                  return http::problem(422, "card_declined", "the card is not good for it");
                tx.execute("insert into charges (order_id, cents) values ($1, $2)", {o.id, o.cents});
                return http::text(201, "text/plain", "charge of " + o.id);
              }));
  return routes;
}
// [end]

http::router warehouse_routes(settle::database& stock) {
  http::router routes;
  routes.post("/reservations", http::participant(stock, [](const auto& asked, const auto& call, auto& tx) {
                const auto o = settle::codec<order>::decode(asked.body);
                const bool undo = call.op == settle::saga_op::undo;
                tx.execute(undo ? "delete from reservations where order_id = $1"
                                : "insert into reservations (order_id) values ($1)",
                           {o.id});
                return http::response{204, {}, {}};
              }));
  return routes;
}

// [snippet: http_steps_saga]
settle::saga_type<order> place_order(const http::client& client, const std::string& bank,
                                     const std::string& warehouse) {
  const auto reserve = settle::http_post<order>("reserve_stock", client, warehouse + "/reservations")
                           .undo(settle::http_undo(client, [warehouse](const order& o) {
                             return http::client_request{.method = "POST",
                                                         .url = warehouse + "/reservations",
                                                         .body = settle::codec<order>::encode(o)};
                           }));
  const auto charge = settle::http_post<order, std::string>("charge_payment", client, bank + "/charges")
                          .on_unknown(settle::unknown::repeat);
  return settle::saga_of<order>("place_order", 1, reserve, charge);
}
// [end]

void ask_what_became_of_it(const http::client& client, const std::string& bank) {
  // [snippet: http_steps_find]
  const auto charge =
      settle::http_step<std::string>("charge_card", client, [bank](const order& o) {
        return http::client_request{.method = "PUT",
                                    .url = bank + "/cards/" + o.id,
                                    .body = std::to_string(o.cents),
                                    .time_max = std::chrono::seconds(3)};
      }).on_unknown(settle::unknown::ask, settle::http_find<std::string>(client, [bank](const order& o) {
                      return bank + "/cards/" + o.id;
                    }));
  // [end]
  expect(charge.name() == "charge_card", "a step has a name");
}

void use_the_client_alone(const std::string& at) {
  // [snippet: http_client]
  const http::client client({.time_max = std::chrono::seconds(5)});
  const auto result = client.send({.method = "POST", .url = at, .body = "{}"});
  switch (result.how) {
    case http::delivery::answered:
      std::printf("%d %s\n", result.answer.status, result.answer.body.c_str());
      break;
    case http::delivery::not_sent:  // it was certainly not done
    case http::delivery::unknown:   // it may have been done
      std::printf("%s: %s\n", std::string(to_string(result.why)).c_str(), result.detail.c_str());
      break;
  }
  // [end]
  expect(result.answer.status == 400, "this is no call of a saga");
}

void run(const std::string& folder) {
  const auto books = settle::sqlite::open(folder + "/bank.db"),
             stock = settle::sqlite::open(folder + "/stock.db"),
             own = settle::sqlite::open(folder + "/shop.db");
  for (auto* db : {books.get(), stock.get(), own.get()}) settle::migrate(*db);
  const auto create = [](settle::database& in, const char* table) {
    auto tx = in.begin();
    tx.execute(table);
    tx.commit();
  };
  create(*books, "create table charges (order_id text primary key, cents integer not null)");
  create(*stock, "create table reservations (order_id text primary key)");
  const http::server bank(bank_routes(*books)), warehouse(warehouse_routes(*stock));
  const auto at = [](const http::server& of) { return "http://127.0.0.1:" + std::to_string(of.port()); };

  const http::client client({.time_max = std::chrono::seconds(5)});
  const auto type = place_order(client, at(bank), at(warehouse));
  settle::saga_host host(*own, {.name = "orders"});
  host.add(type);
  const auto good = host.start(type, "7", order{"7", 1200});
  const auto bad = host.start(type, "8", order{"8", 200'000});
  while (host.counts().completed + host.counts().compensated < 2)
    if (!host.run_once()) host.arrivals().wait(host.idle_wait(), {});
  host.leave();

  const auto status = [&](settle::saga_id id) {
    return own->read()
        .execute("select status from settle_saga_instances where saga_id = $1", {id})[0][0]
        .text();
  };
  expect(status(good) == "COMPLETED" && status(bad) == "COMPENSATED", "one is paid, one is undone");
  expect(stock->read().execute("select order_id from reservations").size() == 1, "its stock is free again");
  use_the_client_alone(at(bank) + "/charges");
  ask_what_became_of_it(client, at(bank));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  run(argv[1]);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "http_steps: %s\n", e.what());
  return 1;
}
