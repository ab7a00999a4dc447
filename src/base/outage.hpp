// Something that many messages need is away: who works on them waits, tries one now and then, and goes on by
// itself. Pure.
#pragma once

#include <cstdint>

#include "base/growing_log.hpp"
#include "base/retry.hpp"
#include "settle/environment.hpp"

namespace settle::inline v0 {

class outage {
 public:
  outage(duration wait, duration wait_max) : wait_(wait), wait_max_(wait_max) {}

  bool lasts() const { return failures_ > 0; }
  // A clock that was set back must not put it off.
  bool may_try(timestamp now) const { return !lasts() || now >= until_ || until_ - now > wait_max_; }
  timestamp until() const { return until_; }
  std::int64_t failures() const { return failures_; }

  // One more attempt has failed for it. True: write a line about it; not each of them deserves one.
  bool goes_on(timestamp now) {
    if (!lasts()) since_ = now;
    ++failures_;
    until_ = now + quadratic_wait(failures_, wait_, wait_max_);
    return log_.fails(now);
  }
  // How long it has lasted.
  duration ends(timestamp now) {
    failures_ = 0;
    log_.works(now);
    return now - since_;
  }

 private:
  duration wait_;
  duration wait_max_;
  std::int64_t failures_ = 0;
  timestamp since_{};
  timestamp until_{};
  growing_log log_;
};

}  // namespace settle::inline v0
