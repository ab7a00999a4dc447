// What docs/guides/http.md quotes: routes, a middleware, a server and its end.
//
// Usage: http <folder>      an existing, empty folder for the database file
#include <cstdio>
#include <exception>
#include <string>

#include "settle/adapter/boost_json_http.hpp"
#include "settle/database.hpp"
#include "settle/error.hpp"
#include "settle/http_server.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"

namespace {

namespace http = settle::http;

// [snippet: http_routes]
http::router order_routes(settle::database& db) {
  http::router routes;
  routes.post("/orders", [&db](const http::request& asked) {
    const auto given = http::parse_json(asked);
    if (!given) return given.refused();
    const auto* id = given->is_object() ? given->as_object().if_contains("id") : nullptr;
    if (id == nullptr || !id->is_string()) return http::problem(422, "id_missing", "an order has an id");
    const std::string order(id->as_string());
    auto tx = db.begin();
    tx.set_cause(http::cause_of(asked));  // events below carry the caller's trace
    tx.execute("insert into orders (id) values ($1)", {order});
    settle::publish(tx, {.topic = "orders", .type = "order.placed", .key = order, .payload = asked.body});
    tx.commit();
    return http::json(201, {{"id", order}});
  });
  routes.get("/orders/{id}", [&db](const http::request& asked) {
    auto tx = db.begin();
    const auto found = tx.execute("select id from orders where id = $1", {asked.parameter("id")});
    if (found.empty()) return http::problem(404, "order_unknown", "there is no such order");
    return http::json(200, {{"id", asked.parameter("id")}});
  });
  routes.get("/healthz", [](const http::request&) { return http::json(200, {{"alive", true}}); },
             {.quick = true});
  return routes;
}
// [end]

// [snippet: http_middleware]
http::middleware require_token(const std::string& token) {
  return [token](http::handler next) -> http::handler {
    return [token, next](const http::request& asked) {
      if (asked.headers.find("Authorization") != "Bearer " + token)
        return http::problem(401, "token_missing", "send the token that you were given");
      return next(asked);
    };
  };
}
// [end]

int status_of(const http::router& routes, const std::string& method, const std::string& target,
              std::string body = {}) {
  return routes.handle({.method = method, .target = target, .body = std::move(body)}).status;
}

http::response report_of(const http::request& asked) {
  return http::json(200, {{"day", asked.parameter("day")}});
}

// [snippet: http_replace]
void remove_reports(http::server& server, settle::database& db) {
  server.replace(order_routes(db));  // without /reports/{day}: 404 from here on
}
// [end]

void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

void run(const std::string& folder) {
  const auto db = settle::sqlite::open(folder + "/orders.db");
  settle::migrate(*db);
  {
    auto tx = db->begin();
    tx.execute("create table orders (id text primary key)");
    tx.commit();
  }
  // [snippet: http_without_a_socket]
  const auto routes = order_routes(*db);
  expect(routes.handle({.method = "POST", .target = "/orders", .body = R"({"id":"7"})"}).status == 201,
         "placed");
  expect(routes.handle({.method = "GET", .target = "/orders/7"}).status == 200, "found");
  // [end]
  expect(status_of(routes, "GET", "/orders/8") == 404, "unknown");
  expect(status_of(routes, "POST", "/orders", "{") == 400, "not JSON");
  expect(status_of(routes, "POST", "/orders", "[]") == 422, "no order");
  expect(status_of(routes, "DELETE", "/orders/7") == 405, "no such method");

  http::router guarded;
  guarded.use(require_token("secret")).get("/", [](const http::request&) { return http::json(200, {}); });
  expect(status_of(guarded, "GET", "/") == 401, "guarded");

  // [snippet: http_worker_groups]
  const auto for_reports =
      std::make_shared<http::worker_group>(http::worker_group_options{.threads = 2, .queue_max = 16});
  auto all_routes = order_routes(*db);
  all_routes.get("/reports/{day}", report_of, {.workers = for_reports});
  // [end]
  expect(status_of(all_routes, "GET", "/reports/7") == 200, "reported");
  http::server reporting(std::move(all_routes));
  remove_reports(reporting, *db);

  // [snippet: http_server]
  http::server server(order_routes(*db), {.port = 0, .worker_threads = 4, .body_bytes_max = 64 * 1024});
  std::printf("listening on %s:%d\n", server.address().c_str(), server.port());
  // … until SIGTERM; then:
  if (!server.drain(std::chrono::seconds(10))) std::puts("some requests were cut off");
  // [end]
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : ".");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "http: %s\n", e.what());
    return 1;
  }
}
