// Expected: std::function<settle::v0::http::kept_response(const settle::v0::http::request&,
// settle::v0::transaction&)>
#include "settle/http_once.hpp"

void wrong(settle::database& db, const settle::http::idempotency& policy) {
  settle::http::idempotent(db, policy, [](const settle::http::request&) {  // here
    return settle::http::response{};
  });
}
