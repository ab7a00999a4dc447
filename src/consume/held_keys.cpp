#include "consume/held_keys.hpp"

namespace settle::consume {

std::vector<work*> held_keys::note(batch messages, const std::set<key_view>& held, timestamp now) {
  std::vector<work*> theirs;
  for (auto* one : messages) {
    const auto& m = one->what();
    if (held.contains({m.topic, m.key})) {
      theirs.push_back(one);
      since_.try_emplace({m.topic, m.key}, now);
    } else {
      since_.erase({m.topic, m.key});
    }
  }
  return theirs;
}

void held_keys::for_overdue(timestamp now, duration too_long, const each_key& each) {
  for (auto& [key, since] : since_) {
    if (now - since < too_long) continue;
    since = now;
    each(key.first, key.second);
  }
}

}  // namespace settle::consume
