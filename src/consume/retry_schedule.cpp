#include "consume/retry_schedule.hpp"

namespace settle::consume {
namespace {

constexpr std::size_t worth_a_look = 8;  // parked messages
constexpr int gathered_part = 10;        // of retry_wait

}  // namespace

// Others may park messages too, so there is a look now and then in any case.
bool retry_schedule::is_time(timestamp now, bool has_other_work) const {
  const bool clock_set_back = next_look_ - now > with_.idle_poll;
  if (now < next_look_ && !clock_set_back) return false;
  const duration gather = with_.retry_wait / gathered_part;
  return !has_other_work || now >= gather_until_ || gather_until_ - now > gather;
}

retry_schedule::look retry_schedule::ask(timestamp now, bool has_other_work) {
  if (!is_time(now, has_other_work)) return look::none;
  const bool missed = std::exchange(with_batch_, false);
  with_batch_ = has_other_work && !missed;
  return with_batch_ ? look::with_the_next_batch : look::now;
}

void retry_schedule::looking(timestamp now) {
  next_look_ = now;
  too_long_ = false;
}

void retry_schedule::found_none(timestamp now, const std::optional<range>& later) {
  auto next = later ? later->first : timestamp::max();
  if (next <= now) next = now + with_.retry_wait;  // others have it in hand, or a handler for it
  next_look_ = std::clamp<timestamp>(next, now + duration(1), now + with_.idle_poll);
  too_long_ = later && later->last > latest(now);
}

void retry_schedule::pulled(timestamp now) {
  next_look_ = now;
  too_long_ = false;
}

void retry_schedule::announced(timestamp at, std::size_t messages) {
  with_batch_ = false;
  gather_until_ = messages < worth_a_look ? at + with_.retry_wait / gathered_part : at;
}

}  // namespace settle::consume
