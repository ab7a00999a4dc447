#include "settle/http_once.hpp"

#include <exception>
#include <utility>

#include "base/http_syntax.hpp"
#include "once/http_rules.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::http {
namespace {

void check(const idempotency& policy) {
  if (policy.service.empty())
    throw error(errc::invalid_argument, "idempotency.service must name the service");
  if (!policy.caller)
    throw error(errc::invalid_argument, "idempotency.caller must say who asks: keys belong to callers");
  for (const auto& name : policy.headers)
    if (!may_be_recorded(name))
      throw error(errc::invalid_argument, "idempotency.headers: " + name + " must not be sent again");
}

// Before anything commits: effects would stay of which nobody can be told, on any repetition.
void check_sendable(const response& made) {
  if (const auto fault = fault_of(made); !fault.empty())
    throw error(errc::invalid_argument, "the answer of a handler cannot be sent: " + std::string(fault));
}

class route {
 public:
  route(database& db, idempotency policy, transactional_handler work)
      : db_(db), policy_(std::move(policy)), work_(std::move(work)) {}

  response operator()(const request& asked) const {
    if (!is_covered(policy_, asked.method)) return unprotected(asked);
    auto [key, refused] = key_of(policy_, asked);
    if (refused) return std::move(*refused);
    if (!key) return unprotected(asked);
    const auto caller = policy_.caller(asked);
    if (!caller) return caller_unknown(asked);
    return execute(asked, *caller, *key);
  }

 private:
  response execute(const request& asked, const std::string& caller, const std::string& key) const {
    response full;  // with what is not recorded
    std::exception_ptr thrown;
    const auto result = once(
        db_, {policy_.service, caller, key},
        [&](transaction& tx) {
          tx.set_cause(cause_of(asked));
          auto made = result_of(asked, tx, thrown);
          check_sendable(made.what);
          auto recorded = to_record(policy_, made);
          full = std::move(made.what);
          return recorded;
        },
        {.fingerprint = fingerprint_of(policy_, asked),
         .keep = policy_.keep,
         .answer_bytes_max = policy_.answer_bytes_max},
        asked.cancelled);
    switch (result.outcome) {
      case once_outcome::executed:
        if (thrown) std::rethrow_exception(thrown);
        full.headers.set("Idempotent-Replayed", "false");
        return full;
      case once_outcome::replayed:
        return replayed(result.what);
      case once_outcome::in_flight:
        return in_flight(policy_, asked);
      case once_outcome::mismatch:
        return mismatch(policy_, asked);
    }
    throw error(errc::invalid_argument, "an outcome that nobody knows");
  }

  // Where server errors are recorded, an exception of the handler is one. It is thrown again after that, for
  // the router to log and to answer.
  kept_response result_of(const request& asked, transaction& tx, std::exception_ptr& thrown) const {
    thrown = nullptr;
    if (keep_of(policy_, 500) == keeps::nothing) return work_(asked, tx);
    try {
      return work_(asked, tx);
    } catch (const error&) {
      throw;
    } catch (...) {
      thrown = std::current_exception();
      return {handler_failed(asked), keeps::answer};
    }
  }

  response unprotected(const request& asked) const {
    auto tx = db_.begin(asked.cancelled);
    tx.set_cause(cause_of(asked));
    auto made = work_(asked, tx);
    check_sendable(made.what);
    if (to_record(policy_, made).keep == keeps::everything) tx.commit("once.unprotected");
    return std::move(made.what);
  }

  database& db_;
  idempotency policy_;
  transactional_handler work_;
};

}  // namespace

handler idempotent(database& db, idempotency policy, transactional_handler work) {
  check(policy);
  return route(db, std::move(policy), std::move(work));
}

}  // namespace settle::inline v0::http
