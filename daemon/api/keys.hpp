// Idempotency keys over HTTP, for services in any language: POST /v1/keys/claim, complete, renew, release.
// What is asked while others are at the store goes there together, in one transaction.
#pragma once

#include <functional>

#include "daemon/api/route_place.hpp"
#include "settle/claims.hpp"
#include "settle/http.hpp"

namespace settle::daemon {

// `store` gives the claims, or throws while there are none yet.
void add_key_routes(http::router& to, std::function<claims&()> store, const route_place& at = {});

}  // namespace settle::daemon
