// The decisions about an idempotent HTTP request. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "settle/http_once.hpp"

namespace settle::http {

bool is_covered(const idempotency& policy, std::string_view method);

// What has to be the same when a key comes again.
std::string fingerprint_of(const idempotency& policy, const request& asked);

struct read_key {
  std::optional<std::string> key = std::nullopt;
  std::optional<response> refused = std::nullopt;  // neither: there is none, and none is needed
};
read_key key_of(const idempotency& policy, const request& asked);

// A header that may be sent again with a recorded answer.
bool may_be_recorded(std::string_view name);

// What stays of a run with such an answer, unless its handler says so.
keeps keep_of(const idempotency& policy, int status);

answer to_record(const idempotency& policy, const kept_response& of);
response replayed(const answer& of);
response in_flight(const idempotency& policy, const request& asked);
response mismatch(const idempotency& policy, const request& asked);
response caller_unknown(const request& asked);
// What the router answers when a handler throws.
response handler_failed(const request& asked);

}  // namespace settle::http
