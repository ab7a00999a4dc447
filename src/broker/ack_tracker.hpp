// For offset brokers: which position may be committed when messages finish out of order.
#pragma once

#include <cstdint>
#include <set>

namespace settle::inline v0 {

// Positions are delivered in growing order; done() may come in any order and any number of times.
class ack_tracker {
 public:
  explicit ack_tracker(std::int64_t committed) : committed_(committed), delivered_(committed) {}

  void delivered(std::int64_t position) {
    open_.insert(position);
    delivered_ = position;
  }

  void done(std::int64_t position) { open_.erase(position); }

  // Everything at or below it is done.
  std::int64_t done_through() const { return open_.empty() ? delivered_ : *open_.begin() - 1; }

  std::int64_t delivered_through() const { return delivered_; }
  bool has_news() const { return done_through() > committed_; }
  void committed(std::int64_t position) { committed_ = position; }
  std::int64_t committed_through() const { return committed_; }

 private:
  std::set<std::int64_t> open_;
  std::int64_t committed_;
  std::int64_t delivered_;
};

}  // namespace settle
