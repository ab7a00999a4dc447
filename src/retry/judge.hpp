// What follows from a failure that is a message's own: another attempt after a pause, or none. Pure. (For a
// failure that is everybody's see outage.hpp.)
#pragma once

#include <cstdint>
#include <optional>

#include "retry/backoff.hpp"
#include "settle/dead_letter.hpp"
#include "settle/failure.hpp"

namespace settle::retry {

struct policy {
  backoff pauses = {};
  std::int64_t attempts_max = 5;               // for reasons that nobody knows
  duration passing_max_age = duration::max();  // for reasons that should have passed
};

// Such a failure uses up no attempt; what has it is given up by its age. An outage is one of something that
// this message alone needs.
constexpr bool is_passing(failure_class why) {
  return why == failure_class::transient || why == failure_class::outage;
}

// What is known of a message's failures. What decides is counted: a history forgets.
struct tally {
  std::int64_t attempts = 0;  // that failed; the pauses grow with them
  std::int64_t charged = 0;   // of these, those for reasons that are not expected to pass
  std::int64_t crashes = 0;   // processes that ended while it ran

  // With one more failure.
  constexpr tally after(failure_class why) const {
    return {attempts + 1, charged + (is_passing(why) ? 0 : 1), crashes};
  }
  friend bool operator==(const tally&, const tally&) = default;
};

struct judgement {
  std::optional<dead_letter_reason> give_up;  // none: it is tried again
  duration wait{};                            // before that, without jitter
};

// `failed` counts the failure that is judged; `age` is how long ago the message failed first.
judgement judge(const policy& by, failure_class why, const tally& failed, duration age);

// Of a message that its destination has refused so many times by now for its own sake: nobody knows why, or
// whether it will be taken later.
judgement judge_rejection(const policy& by, std::int64_t rejections);

// From when on a message has grown old. If it fails through an outage, and nobody else has got through since
// it last failed, the time until now does not count.
struct aging {
  std::optional<timestamp> first_failed;  // none: it has not failed before
  std::optional<timestamp> last_failed;
  timestamp last_success{};  // of anybody
};
timestamp ages_from(const aging& of, failure_class why, timestamp now);

}  // namespace settle::retry
