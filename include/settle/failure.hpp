// Why a handler failed, and what follows from it.
//
//   throw settle::handler_failed(settle::failure_class::permanent, "the order was cancelled long ago");
//   throw settle::handler_failed(settle::class_of_http_status(response.status), "the bank said " + …);
//
// Anything else that a handler throws is classed by consumer_options::classify, if that has an opinion, and
// then by the table in docs/guides/failures.md.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace settle::inline v0 {

enum class failure_class {
  outage,     // something that many messages need is away: the consumer pauses, and no message is charged
  transient,  // will pass: tried again, with growing pauses, until transient_max_age
  permanent,  // will never work: a dead letter at once
  poison,     // nobody knows: tried again, and a dead letter after attempts_max
};
std::string_view to_string(failure_class of);

class handler_failed : public std::runtime_error {
 public:
  handler_failed(failure_class why, const std::string& what) : std::runtime_error(what), why_(why) {}
  failure_class why() const noexcept { return why_; }

 private:
  failure_class why_;
};

// What an exception says about itself: handler_failed, settle::error by its code, else poison.
failure_class class_of(const std::exception& thrown);

// For callers of HTTP services: 401, 407, 429, 502, 503, 504, 507, 511 outage; 408, 409, 423, 425 transient;
// 501, 505 and every other one below 500 permanent; 500 and the rest poison. A success is no failure, and 0
// is no status: invalid_argument.
failure_class class_of_http_status(int status);

// For users of other PostgreSQL drivers: connection trouble (08, 57, 58, 53, 28, 3D, and 25006 from a
// standby) outage; locks, deadlocks, serialization and timeouts transient; values that their type refuses
// (22) permanent; else poison.
failure_class class_of_sqlstate(std::string_view sqlstate);

}  // namespace settle::inline v0

#pragma GCC visibility pop
