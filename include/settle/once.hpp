// Idempotent requests: a request that comes twice is executed once, and answered the same both times.
//
//   const auto result = settle::once(*db, {"shop", user_id, idempotency_key}, [&](settle::transaction& tx) {
//     tx.execute("insert into orders (id, total_cents) values ($1, $2)", {order_id, 4200});
//     settle::publish(tx, order_placed{order_id, 4200});
//     return settle::answer{.status = 201, .body = order_json};
//   });
//   return to_client(result.what);   // whatever the outcome is:
//
//   | result.outcome | result.what |
//   |---|---|
//   | executed | the first time: the answer of the work |
//   | replayed | again: the recorded answer; nothing ran |
//   | in_flight | the first one is still at work: 409 with Retry-After, and a problem document |
//   | mismatch | this key was used for another request: 422, and a problem document |
//
// What is promised. The effects of the work, its events and the record of its answer commit in one
// transaction, or nothing does. Of two executions of one identity at most one commits, whatever crashes and
// however they interleave: the record is a unique row, and the second one takes its transaction down with it.
// The work may have to run again after it was rolled back, so it must have no effects outside of its
// transaction; for those, record an intent and let a consumer act on it.
//
// What it costs. One round trip before the work (a lock that nobody waits for, and a look for the record);
// the record travels with the commit. Callers of an identity that is at work in the same process are told so
// without a connection.
//
// A record is kept for `keep` at least and answers as long as it is there. Once it has been forgotten
// (forget_expired_keys), the key is as good as new.
//
// Threads: any. Errors: those of the store, and whatever the work throws; nothing is recorded then, and the
// key is free. A commit with an unknown outcome is resolved here: the identity is waited for and looked at.
// Where that fails as well, the error says outcome_unknown(): repeat the request with the same key.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "settle/database.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

// Whose key it is. Each part is hashed with its length: no part can run over into another. A key is one of an
// HTTP header, or any id that the layer has: a gateway's transaction id, a checkout session, a hash of a
// transfer.
struct request_identity {
  std::string_view service;  // which of several that share the database
  std::string_view caller;   // who asks, as authenticated; two callers never share a key
  std::string_view key;      // 1–255 bytes
};

// What stays of a run.
enum class keeps {
  everything,  // effects and answer
  answer,      // the effects are undone; the answer is recorded (a refusal that is final: out of stock)
  nothing,     // the effects are undone and the key stays free (a refusal that may be different next time)
};

struct answer {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  keeps keep = keeps::everything;
  friend bool operator==(const answer&, const answer&) = default;
};

enum class once_outcome { executed, replayed, in_flight, mismatch };
std::string_view to_string(once_outcome of);

struct once_result {
  once_outcome outcome = once_outcome::executed;
  // Right to send as it is, whatever the outcome. Of in_flight and mismatch it is a refusal: 409 or 422, its
  // body a problem document (RFC 9457), and nothing to be recorded (keeps::nothing).
  answer what = {};
};

struct once_options {
  // What has to be the same when the key comes again, in any form: it is stored as a hash. Empty: nothing.
  std::string_view fingerprint = {};
  // How long the record is kept at least.
  duration keep = std::chrono::hours(24);
  // Of an answer; a larger one is refused with payload_too_large, and its run is undone.
  std::size_t answer_bytes_max = std::size_t{1} << 20U;
};

using once_work = std::function<answer(transaction&)>;

once_result once(database& db, const request_identity& who, const once_work& work,
                 const once_options& options = {}, std::stop_token cancel = {});

// The same in a transaction of the caller's, which decides with its commit; also in one that was joined. What
// the work undoes goes back to a savepoint, and so does a work that throws: what the caller wrote stays.
//
// With another isolation level than READ COMMITTED a record may be there that the transaction does not see,
// and with any level one may be forgotten just then. The work is undone or not begun and store_busy thrown,
// which the commit may be as well: roll back and repeat the transaction; the new one sees what is there.
once_result once(transaction& tx, const request_identity& who, const once_work& work,
                 const once_options& options = {});

template <class In, class Work>
  requires((std::derived_from<In, database> || std::derived_from<In, transaction>) &&
           !std::convertible_to<Work, once_work>)
once_result once(In&, const request_identity&, Work&&, const once_options& = {}, std::stop_token = {}) {
  static_assert(std::is_convertible_v<Work, once_work>,
                "settle: the work of settle::once takes (settle::transaction&) and returns a settle::answer");
  return {};
}

// Removes records whose time is over, those of claims (settle/claims.hpp) too, the oldest first, at most so
// many of each kind; how many those were.
std::int64_t forget_expired_keys(database& db, std::int64_t at_most = 1000);

}  // namespace settle::inline v0

#pragma GCC visibility pop
