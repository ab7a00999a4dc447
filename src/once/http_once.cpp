#include "settle/http_once.hpp"

#include <exception>
#include <optional>
#include <utility>

#include "http/shared.hpp"
#include "once/http_rules.hpp"
#include "settle/error.hpp"
#include "settle/failure.hpp"

namespace settle::inline v0::http {
namespace {

constexpr std::size_t key_field_bytes_max = 100;  // it is part of the key

void check(const idempotency& policy) {
  if (policy.service.empty())
    throw error(errc::invalid_argument, "idempotency.service must name the service");
  if (!policy.caller)
    throw error(errc::invalid_argument, "idempotency.caller must say who asks: keys belong to callers");
  if (policy.key_field.size() > key_field_bytes_max)
    throw error(errc::invalid_argument,
                "idempotency.key_field has at most " + std::to_string(key_field_bytes_max) + " bytes");
  if (policy.key_field.find(':') != std::string::npos)
    throw error(errc::invalid_argument, "idempotency.key_field: a colon ends the name in the key");
  for (const auto& name : policy.headers)
    if (!may_be_recorded(name))
      throw error(errc::invalid_argument, "idempotency.headers: " + name + " must not be sent again");
}

// Before anything commits: effects would stay of which nobody can be told, on any repetition.
void check_sendable(const response& made) {
  if (const auto fault = fault_of(made); !fault.empty())
    throw error(errc::invalid_argument, "the answer of a handler cannot be sent: " + std::string(fault));
}

// The store has failed, or something that the work needs is away; it has not come to a result.
bool decides_nothing(const error& e) {
  return e.retryable() || e.outcome_unknown() || e.code() == errc::transaction_lost ||
         class_of(e) == failure_class::outage;
}

// What the handler has only posted, and a constraint that is deferred, fail with the commit.
bool is_found_by_the_commit(const error& e) {
  return !e.outcome_unknown() &&
         (e.code() == errc::constraint_violated || e.code() == errc::statement_failed);
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
  // Of the last run.
  struct run {
    response full;                                      // with what is not recorded
    std::optional<std::string> failure = std::nullopt;  // of the handler, which is a recorded 500 then
    bool has_answered = false;                          // so what fails after it is the commit
  };

  response execute(const request& asked, const std::string& caller, const std::string& key) const {
    const request_identity who{policy_.service, caller, key};
    const auto fingerprint = fingerprint_of(policy_, asked);
    const once_options options{
        .fingerprint = fingerprint, .keep = policy_.keep, .answer_bytes_max = policy_.answer_bytes_max};
    run last;
    try {
      const auto work = [&](transaction& tx) { return run_in(tx, asked, last); };
      return told(asked, once(db_, who, work, options, asked.cancelled), last);
    } catch (const error& e) {
      if (!records_failures() || !last.has_answered || !is_found_by_the_commit(e)) throw;
      last.failure = e.what();
    }
    const auto failed = [&](transaction&) { return recorded({handler_failed(asked), keeps::answer}, last); };
    return told(asked, once(db_, who, failed, options, asked.cancelled), last);
  }

  response told(const request& asked, const once_result& result, run& last) const {
    switch (result.outcome) {
      case once_outcome::executed:
        if (last.failure)
          db_.env().log->write(log_level::error, "http_failure_recorded",
                               {{"path", asked.path}, {"error", *last.failure}});
        last.full.headers.set("Idempotent-Replayed", "false");
        return std::move(last.full);
      case once_outcome::replayed:
        return replayed(result.what);
      case once_outcome::in_flight:
        return in_flight(policy_, asked);
      case once_outcome::mismatch:
        return mismatch(policy_, asked);
    }
    throw error(errc::invalid_argument, "an outcome that nobody knows");
  }

  answer run_in(transaction& tx, const request& asked, run& last) const {
    tx.set_cause(cause_of(asked));
    last.failure.reset();
    last.has_answered = false;
    return recorded(records_failures() ? result_or_failure(tx, asked, last.failure) : work_(asked, tx), last);
  }

  answer recorded(kept_response made, run& last) const {
    check_sendable(made.what);
    auto kept = to_record(policy_, made);
    last.full = std::move(made.what);
    last.has_answered = true;
    return kept;
  }

  bool records_failures() const { return keep_of(policy_, 500) != keeps::nothing; }

  // Where server errors are recorded, an exception of the handler is one.
  kept_response result_or_failure(transaction& tx, const request& asked,
                                  std::optional<std::string>& failure) const {
    try {
      return work_(asked, tx);
    } catch (const error& e) {
      if (decides_nothing(e)) throw;
      failure = e.what();
    } catch (const std::exception& e) {
      failure = e.what();
    } catch (...) {
      failure = "something that is no std::exception";
    }
    return {handler_failed(asked), keeps::answer};
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
  if (!work) throw error(errc::invalid_argument, "the handler of an idempotent route is an empty function");
  return route(db, std::move(policy), std::move(work));
}

}  // namespace settle::inline v0::http
