// Something that many messages need is away: who works on them waits, tries one now and then, and goes on by
// itself. Nobody is charged. Pure.
#pragma once

#include <cstdint>

#include "base/growing_log.hpp"
#include "retry/backoff.hpp"
#include "settle/failure.hpp"

namespace settle::retry {

class outage {
 public:
  explicit outage(const backoff& pauses) : pauses_(pauses) {}

  bool lasts() const { return failures_ > 0; }
  bool may_try(timestamp now) const { return !lasts() || pauses_.is_over(until_, now); }
  timestamp until() const { return until_; }
  std::int64_t failures() const { return failures_; }

  // One more attempt has failed for it. True: write a line about it; not each of them deserves one.
  bool goes_on(timestamp now) {
    if (!lasts()) since_ = now;
    ++failures_;
    until_ = now + pauses_.after(failures_);
    return log_.fails(now);
  }
  // How long it has lasted.
  duration ends(timestamp now) {
    failures_ = 0;
    log_.works(now);
    return now - since_;
  }

 private:
  backoff pauses_;
  std::int64_t failures_ = 0;
  timestamp since_{};
  timestamp until_{};
  growing_log log_;
};

// What one message remembers of the outages that it met. `successes` counts those of everybody.
struct met_outages {
  std::int64_t times = 0;
  std::int64_t successes_then = 0;  // when it last met one

  constexpr void meet(std::int64_t successes) {
    ++times;
    successes_then = successes;
  }
  // It has met one before, and others have got through since: what is away is needed by this message alone.
  constexpr bool is_alone(std::int64_t successes) const { return times > 0 && successes > successes_then; }
};

// Whether a failure is everybody's: then all wait, and the message is not charged.
constexpr bool is_everybodys(failure_class why, const met_outages& before, std::int64_t successes) {
  return why == failure_class::outage && !before.is_alone(successes);
}

}  // namespace settle::retry
