#include "settle/retry_request.hpp"

#include "base/pause.hpp"
#include "retry/backoff.hpp"
#include "settle/error.hpp"

namespace settle::inline v0 {
namespace {

constexpr int attempts_limit = 1000;
constexpr duration time_limit = std::chrono::days(30);

void check(const retry_options& options) {
  const auto within = [](duration value) { return value > duration::zero() && value <= time_limit; };
  if (options.attempts_max < 1 || options.attempts_max > attempts_limit)
    throw error(errc::invalid_argument, "attempts_max is not from 1 to 1000");
  if (!within(options.deadline) || !within(options.first_wait) || !within(options.wait_max))
    throw error(errc::invalid_argument,
                "deadline, first_wait and wait_max are above zero and at most 30 days");
}

}  // namespace

std::string_view to_string(request_end how) {
  switch (how) {
    case request_end::answered:
      return "answered";
    case request_end::attempts_used:
      return "attempts_used";
    case request_end::out_of_time:
      return "out_of_time";
    case request_end::stopped:
      return "stopped";
  }
  return "unknown";
}

request_result retry_request(const request_key& key, const request_sender& send, const retry_options& options,
                             const environment& env, const std::stop_token& stop) {
  check(options);
  const auto begun = env.now();  // a clock that is set back lengthens this; attempts_max ends it all the same
  request_result result;
  while (!stop.stop_requested()) {
    const request_attempt attempt{.number = ++result.attempts,
                                  .time_left = options.deadline - (env.now() - begun)};
    auto answer = with_fault_points(env, "request.send", [&] { return send(key, attempt); });
    const auto now = env.now();
    const auto decision = decide_retry(answer,
                                       {.attempt = attempt.number,
                                        .elapsed = now - begun,
                                        .now = now,
                                        .random = retry::fraction(*env.random)},
                                       options);
    if (answer.status != 0) result.answer = std::move(answer);
    if (!decision.again) {
      result.end = decision.end;
      result.replayed = decision.end == request_end::answered && result.answer.replayed();
      result.unsure = (result.attempts > 1 || options.sent_before) && !decision.result;
      return result;
    }
    if (options.sleep)
      options.sleep(decision.wait, stop);
    else
      pause(decision.wait, stop);
  }
  result.end = request_end::stopped;
  return result;
}

}  // namespace settle::inline v0
