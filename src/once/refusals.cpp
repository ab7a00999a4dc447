#include "once/refusals.hpp"

#include <string>
#include <string_view>

#include "settle/http.hpp"

namespace settle::keys {
namespace {

answer problem_answer(int status, std::string_view code, std::string_view detail) {
  auto made = http::problem(status, code, detail);
  answer refusal{.status = made.status, .body = std::move(made.body), .keep = keeps::nothing};
  for (const auto [name, content] : made.headers) refusal.headers.emplace_back(name, content);
  return refusal;
}

answer at_work() {
  auto made = problem_answer(409, "idempotency_in_flight",
                             "the first request with this key is still at work; come again with it");
  made.headers.emplace_back("Retry-After", "1");
  return made;
}

answer used_for_another() {
  return problem_answer(422, "idempotency_key_reused",
                        "this key was used for another request; a new action needs a new key");
}

answer of_unknown_outcome() {
  return problem_answer(409, "idempotency_outcome_unknown",
                        "whoever claimed this key was not heard of again, and nobody knows whether the work "
                        "was done");
}

}  // namespace

once_result refused(once_outcome why) {
  return {why, why == once_outcome::mismatch ? used_for_another() : at_work()};
}

claim_result refused(claim_outcome why, duration lease) {
  if (why == claim_outcome::mismatch) return {why, {}, lease, used_for_another()};
  return {why, {}, lease, why == claim_outcome::in_flight ? at_work() : of_unknown_outcome()};
}

}  // namespace settle::keys
