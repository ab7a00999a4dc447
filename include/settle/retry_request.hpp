// A request that is sent until it has an answer, under one key, with whatever HTTP client you have.
//
//   const auto key = settle::request_key::make();      // one per user action; store it with the action
//   const auto result = settle::retry_request(key, [&](const settle::request_key& k, const
//   settle::request_attempt&) {
//     auto answer = http.post("/orders", body, {{"Idempotency-Key", k.header()}});
//     return settle::request_answer{.status = answer.status, .headers = answer.headers, .body = answer.body};
//   });
//   if (result.end == settle::request_end::answered && result.answer.status == 201) …
//
// Guarantees: every attempt carries the key that was given, so a server that honours it acts once. What was
// not answered has an unknown outcome and is never reported as a failure: call again with the same key, also
// after a restart. The decision after each answer is decide_retry(), which is pure; sdk/fixtures/retry.json
// is its specification, and the TypeScript client decides by the same file.
//
// What is final: every status but 408, 409, 425, 429, 500, 502, 503 and 504; of these, any with
// `Idempotent-Replayed: true`, because it would be replayed for ever; and 409 or 500 with that header at all,
// because then the service itself has run and answered. Whether a 500 of the first run (`false`) is recorded
// is up to its route; if it is not, nothing of it stays, and the same key may be sent again. Without the
// header 409 means that the first request is still in flight. `Retry-After`, in seconds or as a date, is the
// least wait.
//
// Threads: retry_request() keeps its thread until it returns and shares nothing.
// Errors: what `send` throws passes through, and its outcome is as unknown as after a lost connection.
// Options out of their bounds: invalid_argument.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settle/environment.hpp"
#include "settle/request_key.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct request_answer {
  int status = 0;  // 0: no answer came, or only a part of one
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};

  // The value of a header by its name in any case, without outer spaces; several are joined by ", ". Empty:
  // none.
  std::string header(std::string_view name) const;

  // `Idempotent-Replayed: true`: the recorded answer of an earlier request.
  bool replayed() const;
};

struct retry_options {
  // Requests, the first included; 1 to 1000.
  int attempts_max = 10;
  // No attempt begins later than this after the first. `send` is told how much is left.
  duration deadline = std::chrono::seconds(60);
  // The wait after the first failure; it doubles with each. Half of a wait is random.
  duration first_wait = std::chrono::milliseconds(500);
  // Waits grow up to here. `Retry-After` may ask for more.
  duration wait_max = std::chrono::seconds(10);
  // An earlier call, also one before a restart, has sent this key and ended without a result: then a refusal
  // is `unsure` from the first attempt on. Calls remember nothing of each other.
  bool sent_before = false;
  // How to wait. Empty: the thread sleeps until the time has passed or a stop is requested.
  std::function<void(duration, const std::stop_token&)> sleep = {};
};

enum class request_end {
  answered,       // the last answer is the result
  attempts_used,  // nobody knows what became of the request, as with the next two; the key is still good
  out_of_time,
  stopped,
};
std::string_view to_string(request_end how);

// What a decision depends on beside the answer.
struct retry_moment {
  int attempt = 1;
  duration elapsed = {};  // since the first attempt began
  timestamp now = {};
  double random = 0;  // from 0 to below 1
};

struct retry_decision {
  bool again = false;
  duration wait = {};                       // if again
  request_end end = request_end::answered;  // if not
  // The answer tells what became of the action. A 401, say, tells only that this attempt did nothing.
  bool result = false;
};
retry_decision decide_retry(const request_answer& answer, const retry_moment& at,
                            const retry_options& options);

struct request_attempt {
  int number = 1;
  duration time_left = {};  // until the deadline: a good timeout
};

struct request_result {
  request_end end = request_end::answered;
  request_answer answer = {};  // the last one that came; status 0 if none did
  bool replayed = false;       // it is the recorded answer of an earlier request with this key
  // The answer refuses the last attempt only, and an earlier one of this call, or one before it
  // (retry_options::sent_before), may have succeeded: remove the cause and call again with the same key. A
  // new key could act twice.
  bool unsure = false;
  int attempts = 0;
};

using request_sender = std::function<request_answer(const request_key&, const request_attempt&)>;

request_result retry_request(const request_key& key, const request_sender& send,
                             const retry_options& options = {}, const environment& env = {},
                             const std::stop_token& stop = {});

}  // namespace settle::inline v0

#pragma GCC visibility pop
