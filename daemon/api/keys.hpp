// Idempotency keys over HTTP, for services in any language: POST /v1/keys/claim, complete, renew, release.
// What is asked while others are at the store goes there together, in one transaction.
#pragma once

#include <functional>
#include <string>

#include "settle/claims.hpp"
#include "settle/http.hpp"

namespace settle::daemon {

// `store` gives the claims, or throws while there are none yet. `prefix` stands before the paths.
void add_key_routes(http::router& to, std::function<claims&()> store, const std::string& prefix = {});

}  // namespace settle::daemon
