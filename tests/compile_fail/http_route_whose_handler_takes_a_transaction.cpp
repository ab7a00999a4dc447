// Expected: std::function<settle::v0::http::response(const settle::v0::http::request&)>
#include "settle/database.hpp"
#include "settle/http.hpp"

void wrong(settle::http::router& routes) {
  routes.post("/orders", [](const settle::http::request&, settle::transaction&) {  // here
    return settle::http::response{};
  });
}
