#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.hpp"
#include "http/shared.hpp"
#include "retry/backoff.hpp"
#include "settle/retry_request.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::array retried_statuses{0, 408, 409, 425, 429, 500, 502, 503, 504};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_letters(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, lower, lower);
}

duration retry_after(const request_answer& answer, timestamp now) {
  return http::read_retry_after(answer.header("retry-after"), answer.header("date"), now)
      .value_or(duration::zero());
}

}  // namespace

std::string request_answer::header(std::string_view name) const {
  std::string joined;
  for (const auto& [key, value] : headers) {
    if (!same_letters(key, name)) continue;
    if (!joined.empty()) joined += ", ";
    joined += without_outer_space(value);
  }
  return joined;
}

bool request_answer::replayed() const { return same_letters(header("idempotent-replayed"), "true"); }

retry_decision decide_retry(const request_answer& answer, const retry_moment& at,
                            const retry_options& options) {
  // With this header the service itself has answered, be it with a conflict or a failure.
  const bool own = !answer.header("idempotent-replayed").empty();
  const bool retried = std::ranges::count(retried_statuses, answer.status) > 0;
  const bool replayed = answer.replayed();
  // A failure that is not replayed may have been undone: an earlier attempt can still succeed.
  if (!retried || (own && (answer.status == 409 || answer.status == 500)) || replayed)
    return {.end = request_end::answered, .result = replayed || answer.status < (own ? 500 : 400)};
  if (at.attempt >= options.attempts_max) return {.end = request_end::attempts_used};

  const auto half = retry::doubling_wait(at.attempt - 1, options.first_wait, options.wait_max) / 2;
  const duration spread(static_cast<std::int64_t>(std::floor(at.random * static_cast<double>(half.count()))));
  const auto wait = std::max(half, retry_after(answer, at.now)) + spread;
  if (at.elapsed + wait >= options.deadline) return {.end = request_end::out_of_time};
  return {.again = true, .wait = wait};
}

}  // namespace settle::inline v0
