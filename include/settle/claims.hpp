// Idempotency keys for work outside of the database: a claim with a lease, and a record of the answer.
//
//   auto keys = settle::open_claims(*db);                       // or in Redis: settle::open_claims(*redis)
//   const auto got = keys->claim({.who = {"shop", user_id, idempotency_key}, .fingerprint = request_text});
//   switch (got.outcome) {
//     case settle::claim_outcome::claimed:    // ours: do it, then
//       keys->complete(who, got.token, {.status = 201, .body = order_json});
//     case settle::claim_outcome::completed:  // done before: got.what is the recorded answer
//     case settle::claim_outcome::in_flight:  // somebody is at it: got.what says so (HTTP 409)
//     case settle::claim_outcome::mismatch:   // this key was used for another request: got.what (HTTP 422)
//     case settle::claim_outcome::unknown:    // whoever had it was not heard of again; see when_unknown
//     case settle::claim_outcome::ask:        // likewise, and it is ours to find out before anything is done
//   }
//
// Where the work is a transaction of the same database, use settle::once instead: there a crash undoes both,
// and nothing is ever unknown.
//
// What is promised. Of all claims of one identity at most one is held at a time, and after a complete() every
// later one gets its answer. A lease that has expired does not make the key free: whether the work was done
// is unknown, and is resolved as the claim says. Complete, renew and release name the token; one that was
// superseded changes nothing (`lost`). Every call may be repeated, as it was, if its answer was lost: name
// the run yourself then. A repeated claim that would `ask` does so even if it was the first one: release it
// once the other side says that nothing was done.
//
// What it costs. Calls that come while others are at the store go there together, in one transaction.
//
// In Redis a crash of the server may forget its last second (appendfsync everysec): a key that was claimed in
// it is free again, and its work may run twice. Where that matters, keep them in a database.
//
// Threads: any number. Errors: settle::error. Retryable ones decided nothing for the caller; repeat the call
// with the same run.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "settle/database.hpp"
#include "settle/error.hpp"
#include "settle/ids.hpp"
#include "settle/once.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

namespace redis {
class client;
}

// What a new claim does when the lease of the former one has expired and nobody knows how far it came.
enum class when_unknown {
  hold,     // nothing: `unknown`, until its owner completes it after all or an operator decides
  ask,      // takes it over as `ask`: find out what happened, then complete or release it; do not do it
  reissue,  // takes it over as `claimed`: only where whoever does the work deduplicates by the same key
};

// Names one holding of a key. The epoch grows with every holder of the key, whether the one before was taken
// over, released or completed and forgotten: pass it on where something can refuse a lower one than it has
// seen. In Redis that holds as long as the server keeps its data; what has forgotten it goes on from its
// clock.
struct claim_token {
  uuid run = {};
  std::int64_t epoch = 0;
  friend bool operator==(const claim_token&, const claim_token&) = default;
};

// What operators are shown of a request whose outcome is unknown (`settle keys unknown`), so that they find
// the payment that it was about. All of it is optional, and stored as it is given until the record is
// forgotten: of the caller and the key, whose identity is stored as a hash, give as much as may be read (all,
// or a beginning), and no secrets. 1,024 bytes altogether at most. Not stored in Redis.
struct claim_about {
  std::string_view caller = {};
  std::string_view key = {};
  std::string_view method = {};  // of HTTP
  std::string_view target = {};
  std::string_view label = {};  // anything else: "payment of order 42"

  static constexpr std::size_t bytes_max = 1024;
};

struct claim_request {
  request_identity who;
  // What has to be the same when the key comes again, in any form: it is stored as a hash. Empty: nothing.
  std::string_view fingerprint = {};
  // How long the owner may be silent before the outcome counts as unknown; renew() begins it anew.
  // 1 ms to 24 h. Longer than the work usually takes.
  duration lease = std::chrono::seconds(30);
  // How long the recorded answer is kept at least, from this claim on; its completion may ask for longer, not
  // for less. 1 s to 366 days. Claims without an answer stay.
  duration keep = std::chrono::hours(24);
  when_unknown on_unknown = when_unknown::hold;
  // Names this claim, so that it can be repeated after an error. Nothing: one is drawn.
  std::optional<uuid> run = std::nullopt;
  claim_about about = {};
};

enum class claim_outcome { claimed, ask, completed, in_flight, mismatch, unknown };
std::string_view to_string(claim_outcome of);

struct claim_result {
  claim_outcome outcome = claim_outcome::claimed;
  claim_token token = {};  // of claimed and ask: ours
  duration lease = {};     // of claimed and ask: how long it holds; of in_flight: how long it still does
  // Of completed the recorded answer; of in_flight, mismatch and unknown a refusal to answer with: 409 or
  // 422, its body a problem document (RFC 9457). Of claimed and ask there is none yet: its status is 0, which
  // no server sends.
  answer what = {.status = 0};
};

enum class claim_ended {
  done,
  lost,     // the token holds nothing any more: taken over, or over; nothing was changed
  differs,  // of a completion: the token has been completed with another answer, and that one stays
};

// One call as data, for those who have several at once.
struct claim_completion {
  request_identity who;
  uuid run;
  answer what;
  duration keep = std::chrono::hours(24);  // at least, from now on; see claim_request::keep
};
struct claim_renewal {
  request_identity who;
  uuid run;
  duration lease = std::chrono::seconds(30);
};
struct claim_release {
  request_identity who;
  uuid run;
};
using claim_call = std::variant<claim_request, claim_completion, claim_renewal, claim_release>;
// A completion that `differs` is answered with a claim_result: `completed`, and the answer that is recorded.
//
// A call that has changed nothing at first, and then could not be looked into, while others with it were
// done.
struct claim_failed {
  error why;
};
using claim_answer = std::variant<claim_result, claim_ended, claim_failed>;

// A claim whose lease has expired, for operators.
struct unknown_claim {
  std::string service;
  std::string identity;  // hexadecimal; tells nobody whose key it was
  claim_token token;
  timestamp claimed_at;  // by its first holder
  timestamp lease_until;
  // As the claimer gave it (claim_about), the last one that gave any.
  std::string caller = {}, key = {}, method = {}, target = {}, label = {};
};

class claims {
 public:
  virtual ~claims() = default;

  claim_result claim(const claim_request& what);
  // Records the answer of the work; a repeated call finds it done, one with another answer is told so. Also
  // after the lease, as long as nobody has taken the claim over. Throws payload_too_large beyond
  // answer_bytes_max.
  claim_ended complete(const request_identity& who, const claim_token& token, answer what,
                       duration keep = std::chrono::hours(24));
  claim_ended renew(const request_identity& who, const claim_token& token, duration lease);
  // The work was certainly not done: the key is free again. A repeated call finds it done.
  claim_ended release(const request_identity& who, const claim_token& token);

  // All of them in one transaction or one script, with an answer for each. On PostgreSQL those that change
  // nothing there are looked into in a second one, and may fail alone. Otherwise it throws for all or none;
  // in Redis they may have been done all the same, so name the runs and repeat what is needed.
  virtual std::vector<claim_answer> run(std::span<const claim_call> calls) = 0;

  virtual const environment& env() const = 0;

  static constexpr std::size_t answer_bytes_max = std::size_t{1} << 20U;

 protected:
  // Together with those of other threads.
  virtual claim_answer run_with_others(claim_call call) = 0;
};

// In a database that migrate() has seen. It must outlive this object.
std::unique_ptr<claims> open_claims(database& db);

struct redis_claims_options {
  // What keys begin with: <prefix>:<service>:<hash of caller>:<hash of key>.
  std::string key_prefix = "idempotency";
};
std::unique_ptr<claims> open_claims(redis::client& in, const redis_claims_options& options = {});

// Claims in a database whose outcome is unknown, the oldest first. Reads the whole table: for operators, not
// for loops. Those in Redis are not listed.
std::vector<unknown_claim> unknown_claims(database& db, std::int64_t at_most = 100);

// What an operator decides about one of them: with an answer it is completed, without one the key is free
// again. `lost`: it was completed, taken over or decided meanwhile.
claim_ended resolve_claim(database& db, const unknown_claim& which, const std::optional<answer>& what);

}  // namespace settle::inline v0

#pragma GCC visibility pop
