// The component for Boost.Beast: a request of its, answered by a handler of Settle's.
#include "settle/adapter/beast.hpp"

int main() {
  settle::http::router routes;
  routes.get("/",
             [](const settle::http::request&) { return settle::http::text(200, "text/plain", "hello"); });
  const settle::http::beast_request asked(boost::beast::http::verb::get, "/", 11);
  const auto answer = settle::http::to_beast(routes.handle(settle::http::from_beast(asked)), asked);
  return answer.body() == "hello" ? 0 : 1;
}
