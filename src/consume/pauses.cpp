#include "consume/pauses.hpp"

namespace settle::consume {

bool pauses::begin_with(work& one, const failed_attempt& how) {
  if (one.parked || !retry::is_everybodys(how.why, one.outages, successes_)) return false;
  one.outages.meet(successes_);
  outage_.goes_on(env_.now());
  report_.paused(one, how, outage_);
  return true;
}

void pauses::handlers_succeeded() {
  ++successes_;
  last_success_ = env_.now();
  if (outage_.lasts()) report_.resumed(outage_.ends(env_.now()));
}

void pauses::round_failed(const error& why) {
  if (class_of(why) != failure_class::outage || cut_off_since_) return;
  cut_off_since_ = env_.now();
  report_.paused(why);
}

void pauses::round_succeeded() {
  if (!cut_off_since_) return;
  report_.resumed(env_.now() - *cut_off_since_);
  cut_off_since_.reset();
}

}  // namespace settle::consume
