// Which deliveries of a session are not acknowledged, and how to say with few words that some are. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <vector>

namespace settle::inline v0::rabbitmq {

class unacknowledged {
 public:
  // Tags grow.
  void delivered(std::uint64_t tag) { open_.push_back(tag); }

  struct words {
    std::uint64_t tag = 0;
    bool and_all_before = false;
  };
  // In the order in which they are to be said. What is not open any more is left out: the server would close
  // the channel over a tag that it does not know.
  std::vector<words> done(std::vector<std::uint64_t> tags) {
    std::ranges::sort(tags);
    const auto unique = std::ranges::unique(tags);
    tags.erase(unique.begin(), unique.end());
    std::vector<words> said;
    std::size_t next = 0;
    std::uint64_t through = 0;
    for (; !open_.empty() && next < tags.size(); ++next) {
      if (tags[next] < open_.front()) continue;
      if (tags[next] != open_.front()) break;
      through = open_.front();
      open_.pop_front();
    }
    if (through != 0) said.push_back({through, true});
    for (; next < tags.size(); ++next) {
      const auto found = std::ranges::lower_bound(open_, tags[next]);
      if (found == open_.end() || *found != tags[next]) continue;
      said.push_back({tags[next], false});
      open_.erase(found);
    }
    return said;
  }

  // The first tag that is not acknowledged; after all others if there is none.
  std::uint64_t first() const {
    return open_.empty() ? std::numeric_limits<std::uint64_t>::max() : open_.front();
  }
  std::size_t size() const { return open_.size(); }

 private:
  std::deque<std::uint64_t> open_;
};

}  // namespace settle::inline v0::rabbitmq
