// When a consumer looks for parked messages, and how many of them it tries together. Pure.
//
// A look that finds some costs a commit of its own, the announcement. So under load it is made in the
// transaction of the next batch, which commits anyway, and those that come due shortly after each other go
// together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "settle/environment.hpp"

namespace settle::consume {

class retry_schedule {
 public:
  struct settings {
    duration retry_wait;
    duration retry_wait_max;
    duration idle_poll;
    duration announced_for;    // how long nobody else looks at messages that were announced
    std::size_t together_max;  // messages in one transaction
  };
  explicit retry_schedule(const settings& with) : with_(with) {}

  // One of this consumer's own is due then.
  void expect(timestamp due) { next_look_ = std::min(next_look_, due); }
  timestamp next_look() const { return next_look_; }

  enum class look { none, with_the_next_batch, now };
  // Asked once per round. A look that was left to a batch, and was not made there, is made now.
  look ask(timestamp now, bool has_other_work);
  // Whether the batch at hand makes the look.
  bool is_left_to_the_batch() const { return with_batch_; }

  // The look is made, and finds some; or finds none, and when the first and the last of the others are due.
  void looking(timestamp now);
  struct range {
    timestamp first, last;
  };
  void found_none(timestamp now, const std::optional<range>& later);
  // Some are to wait for longer than anything ever waits: a clock was set back. They come now, and nothing
  // waits for longer than latest().
  bool somebody_waits_too_long() const { return too_long_; }
  timestamp latest(timestamp now) const { return now + 2 * with_.retry_wait_max + with_.announced_for; }
  void pulled(timestamp now);

  // Somebody else is at those that were found.
  void all_elsewhere(timestamp now) { next_look_ = now + with_.retry_wait; }
  // The announcement has committed.
  void announced(timestamp at, std::size_t messages);
  // Time was up before the first of them began: as if the batch had come to nothing.
  void came_too_late() { with_batch_ = true; }

  // What has failed will probably fail again, so it begins alone; where all goes well, ever more go together.
  std::size_t together() const { return together_; }
  void tried(bool all_went_well) {
    together_ = all_went_well ? std::min(2 * together_, with_.together_max) : 1;
  }

 private:
  bool is_time(timestamp now, bool has_other_work) const;

  settings with_;
  timestamp next_look_{};
  timestamp gather_until_{};  // not before this while there is other work: few were due the last time
  bool too_long_ = false;
  bool with_batch_ = false;
  std::size_t together_ = 1;
};

}  // namespace settle::consume
