// Idempotent HTTP requests: a route that takes an Idempotency-Key and executes each request once.
//
//   const settle::http::idempotency policy{.service = "shop", .caller = [](const auto& asked) { return
//   user_of(asked); }}; routes.post("/orders", settle::http::idempotent(*db, policy, [](const auto& asked,
//   settle::transaction& tx) {
//     const auto id = place_order(tx, asked.body);
//     return settle::http::text(201, "application/json", order_json(id));
//   }));
//
// The handler works in the transaction that records its answer (settle/once.hpp has the promises). What the
// client sees follows draft-ietf-httpapi-idempotency-key-header, or what Stripe does:
//
//   | | ietf | stripe |
//   |---|---|---|
//   | the first request | the handler's answer, `Idempotent-Replayed: false` | the same |
//   | again, finished | the recorded answer, `Idempotent-Replayed: true` | the same |
//   | again, after a 5xx | runs again | the recorded 5xx, `Idempotent-Replayed: true` |
//   | again, still at work | 409 `idempotency_in_flight`, `Retry-After: 1` | 409 `idempotency_error` |
//   | the same key, another request | 422 `idempotency_key_reused`; before 409 | 400 `idempotency_error` |
//   | no key where one is required | 400 `idempotency_key_missing` | 400 `idempotency_error` |
//   | a header that is no key | 400 `idempotency_key_invalid` | 400 `idempotency_error` |
//   | nobody authenticated | 401 `caller_unknown` | the same |
//   | the store is down | 503, to be repeated with the same key | the same |
//
// Threads: what idempotent() returns may be called by many at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "settle/database.hpp"
#include "settle/http.hpp"
#include "settle/once.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::http {

enum class idempotency_profile { ietf, stripe };

// What stays of a run, by the status of its answer. Success keeps everything. A handler that knows better
// says so with its answer.
struct recorded_statuses {
  keeps client_error = keeps::answer;  // 4xx
  // 5xx. Nothing: as the profile has it, keeps::nothing for ietf (the next request with the key runs again),
  // keeps::answer for stripe. An exception of the handler is a 500 without effects, also a settle::error such
  // as constraint_violated. Never recorded is one after which the same request may succeed: it is retryable,
  // its outcome is unknown, or the store has failed and not the work.
  std::optional<keeps> server_error = std::nullopt;
};

// What the refusals are called in their answers, for a service whose clients know other words.
struct idempotency_codes {
  std::string in_flight = "idempotency_in_flight";
  std::string reused = "idempotency_key_reused";
  std::string missing = "idempotency_key_missing";
  std::string invalid = "idempotency_key_invalid";
};

struct idempotency {
  // Names the service in the keys: two services that share a database share no keys.
  std::string service;
  // Who asks, as authenticated; nothing: 401. Keys of two callers never meet. There is no default: a key that
  // belongs to nobody answers everybody.
  std::function<std::optional<std::string>(const request&)> caller;
  idempotency_profile profile = idempotency_profile::ietf;
  // Whether a request without a key is refused. If not, its handler runs as if there were no such header.
  bool required = true;
  // A top-level member of a JSON body that is the key where there is no such header, as checkout_session_id
  // or refund_request_id: a string or an integer. Ids of two members never meet; those of one member do on
  // all routes of a service, so name the service after the route where the same id asks for different things.
  std::string key_field = {};
  // Requests with other methods run as if there were no such header.
  std::vector<std::string> methods = {"POST", "PATCH"};
  // How long an answer is kept at least.
  duration keep = std::chrono::hours(24);
  // What makes two requests the same, besides method and target: top-level fields of a JSON body. Empty, or a
  // body that is no JSON object: the whole body.
  std::vector<std::string> fingerprint_fields = {};
  // Headers that are recorded besides Content-Type, Content-Encoding, Content-Language, Location, ETag and
  // Link. Never cookies, Date, rate limits and what belongs to the connection.
  std::vector<std::string> headers = {};
  recorded_statuses record = {};
  idempotency_codes codes = {};
  // Of a recorded answer. A larger one is undone and answered with 500, on every repetition too.
  std::size_t answer_bytes_max = once_options{}.answer_bytes_max;
};

// A handler's answer, and what stays of its run if its status does not say it: `return {problem(…),
// keeps::nothing}` where validation has failed before anything was done. An answer that cannot be sent (a
// status that is none, a line break in a header) is undone and answered with 500, on every repetition too.
struct kept_response {
  kept_response(response of, std::optional<keeps> keep = std::nullopt) : what(std::move(of)), keep(keep) {}
  response what;
  std::optional<keeps> keep;
};
using transactional_handler = std::function<kept_response(const request&, transaction&)>;

// Throws invalid_argument for a policy without a service or a caller, or one that records a header that must
// not be.
handler idempotent(database& db, idempotency policy, transactional_handler work);

}  // namespace settle::inline v0::http

#pragma GCC visibility pop
