#include "settle/claims.hpp"

#include <array>
#include <map>

#include "once/claim_about.hpp"
#include "once/claim_calls.hpp"
#include "once/key.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {

std::string_view to_string(claim_outcome of) {
  switch (of) {
    case claim_outcome::claimed:
      return "claimed";
    case claim_outcome::ask:
      return "ask";
    case claim_outcome::completed:
      return "completed";
    case claim_outcome::in_flight:
      return "in_flight";
    case claim_outcome::mismatch:
      return "mismatch";
    case claim_outcome::unknown:
      return "unknown";
  }
  return "unknown";
}

claim_result claims::claim(const claim_request& what) {
  return std::get<claim_result>(run_with_others(what));
}

claim_ended claims::complete(const request_identity& who, const claim_token& token, answer what,
                             duration keep) {
  const auto answered = run_with_others(claim_completion{who, token.run, std::move(what), keep});
  const auto* ended = std::get_if<claim_ended>(&answered);
  return ended != nullptr ? *ended : claim_ended::differs;
}

claim_ended claims::renew(const request_identity& who, const claim_token& token, duration lease) {
  return std::get<claim_ended>(run_with_others(claim_renewal{who, token.run, lease}));
}

claim_ended claims::release(const request_identity& who, const claim_token& token) {
  return std::get<claim_ended>(run_with_others(claim_release{who, token.run}));
}

}  // namespace settle::inline v0

namespace settle::keys {
namespace {

constexpr duration lease_max = std::chrono::hours(24);
constexpr duration keep_max = std::chrono::days(366);

void check_span(duration of, duration min, duration max, std::string_view name, std::string_view bounds) {
  if (of < min || of > max)
    throw error(errc::invalid_argument, std::string(name) + " of a claim must be " + std::string(bounds));
}

void check_lease(duration of) {
  check_span(of, std::chrono::milliseconds(1), lease_max, "the lease", "1 ms to 24 h");
}
void check_keep(duration of) {
  check_span(of, std::chrono::seconds(1), keep_max, "the time to keep the answer", "1 s to 366 days");
}

struct checker {
  void operator()(const claim_request& of) const {
    check_identity(of.who);
    check_lease(of.lease);
    check_keep(of.keep);
    check_about(of.about);
  }
  void operator()(const claim_completion& of) const {
    check_identity(of.who);
    check_keep(of.keep);
    check_answer(of.what, claims::answer_bytes_max, "claims::answer_bytes_max");
  }
  void operator()(const claim_renewal& of) const {
    check_identity(of.who);
    check_lease(of.lease);
  }
  void operator()(const claim_release& of) const { check_identity(of.who); }
};

std::string_view operation_of(const claim_call& call) {
  constexpr std::array names = {"claim", "complete", "renew", "release"};
  return names.at(call.index());
}

std::string_view outcome_of(const claim_answer& answered) {
  if (const auto* result = std::get_if<claim_result>(&answered)) return to_string(result->outcome);
  if (std::holds_alternative<claim_failed>(answered)) return "failed";
  return std::get<claim_ended>(answered) == claim_ended::done ? "done" : "lost";
}

}  // namespace

const request_identity& who_of(const claim_call& call) {
  return std::visit([](const auto& one) -> const request_identity& { return one.who; }, call);
}

void check(const claim_call& call) { std::visit(checker{}, call); }

void name_run(claim_call& call, const environment& env) {
  if (auto* claim = std::get_if<claim_request>(&call); claim != nullptr && !claim->run)
    claim->run = env.ids->next();
}

claim_answer batched_claims::run_with_others(claim_call call) {
  check(call);
  name_run(call, env());
  auto answered = waiting_.call(std::move(call));
  if (const auto* failed = std::get_if<claim_failed>(&answered)) throw failed->why;
  return answered;
}

std::vector<claim_answer> batched_claims::run(std::span<const claim_call> calls) {
  for (const auto& one : calls) check(one);
  return run_and_count(calls);
}

std::vector<claim_answer> batched_claims::run_and_count(std::span<const claim_call> calls) {
  auto answered = run_checked(calls);
  std::map<std::pair<std::string_view, std::string_view>, std::int64_t> counts;
  for (std::size_t n = 0; n < calls.size(); ++n) ++counts[{operation_of(calls[n]), outcome_of(answered[n])}];
  for (const auto& [what, times] : counts)
    env().counters->add("settle_claims_total", {{"operation", what.first}, {"outcome", what.second}}, times);
  return answered;
}

}  // namespace settle::keys
