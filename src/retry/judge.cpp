#include "retry/judge.hpp"

#include "retry/crashes.hpp"

namespace settle::retry {

judgement judge(const policy& by, failure_class why, const tally& failed, duration age) {
  if (has_crashed_enough(failed.crashes)) return {dead_letter_reason::crashed_process};
  if (why == failure_class::permanent) return {dead_letter_reason::permanent};
  if (is_passing(why) && age >= by.passing_max_age) return {dead_letter_reason::too_old};
  if (!is_passing(why) && failed.charged >= by.attempts_max) return {dead_letter_reason::exhausted};
  return {std::nullopt, by.pauses.after(failed.attempts)};
}

judgement judge_rejection(const policy& by, std::int64_t rejections) {
  return judge(by, failure_class::poison, {.attempts = rejections, .charged = rejections}, {});
}

timestamp ages_from(const aging& of, failure_class why, timestamp now) {
  const bool others_work = !of.last_failed || of.last_success > *of.last_failed;
  if (why == failure_class::outage && !others_work) return now;
  return of.first_failed.value_or(now);
}

}  // namespace settle::retry
