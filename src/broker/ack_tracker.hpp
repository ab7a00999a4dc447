// For offset brokers: which position may be committed when messages finish out of order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

namespace settle::inline v0 {

// Positions are delivered in growing order; done() may come in any order and any number of times.
class ack_tracker {
 public:
  explicit ack_tracker(std::int64_t committed)
      : committed_(committed), done_(committed), delivered_(committed) {}

  void delivered(std::int64_t position) {
    unsettled_.push_back({position, false});
    delivered_ = position;
  }

  void done(std::int64_t position) {
    const auto found = std::ranges::lower_bound(unsettled_, position, {}, &entry::position);
    if (found == unsettled_.end() || found->position != position) return;
    found->done = true;
    for (; !unsettled_.empty() && unsettled_.front().done; unsettled_.pop_front())
      done_ = unsettled_.front().position;
  }

  // Everything at or below it is done. It is a position that was delivered, not the one before the next: the
  // gap up to there belongs to others, and to move over it is no news worth a commit.
  std::int64_t done_through() const { return done_; }

  std::int64_t delivered_through() const { return delivered_; }
  bool has_news() const { return done_through() > committed_; }
  void committed(std::int64_t position) { committed_ = position; }
  std::int64_t committed_through() const { return committed_; }

 private:
  struct entry {
    std::int64_t position;
    bool done;
  };
  std::deque<entry> unsettled_;  // in growing order; the first one is not done
  std::int64_t committed_;
  std::int64_t done_;
  std::int64_t delivered_;
};

}  // namespace settle
