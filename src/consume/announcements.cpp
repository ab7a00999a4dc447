#include "consume/announcements.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

namespace settle::consume {

// Another version of this consumer has parked the others: they are left to it, and later ones of their keys
// with them.
std::vector<work> announcements::due_and_handled(transaction& look, timestamp now) {
  const auto kinds = handlers_.all();
  for (;;) {
    auto due =
        parking_.due(look, runner_.batch_limit(), now, others_park_ ? kinds : std::vector<subscribed>());
    std::set<std::tuple<std::string, std::string, std::string>> left;
    const auto gone = std::erase_if(due, [&](const work& one) {
      const std::tuple key(one.what().topic, one.what().key, one.parked->single);
      if (handlers_.of(one.what()) == nullptr && left.insert(key).second) report_.unhandled(one.what());
      return left.contains(key);
    });
    if (gone == 0 || others_park_) return due;
    others_park_ = true;  // from now on they are not even read
  }
}

std::vector<work> announcements::look(transaction& look, timestamp now) {
  schedule_.looking(now);
  auto due = due_and_handled(look, now);
  if (due.empty()) schedule_.found_none(now, parking_.later(look));
  return due;
}

announcement announcements::announce(transaction& tx, std::vector<work> due, timestamp now) {
  if (schedule_.somebody_waits_too_long()) {
    parking_.pull(tx, now, schedule_.latest(now));
    schedule_.pulled(now);
  }
  announcement made{{}, now};
  if (due.empty()) return made;
  if (!unended_.empty()) {
    parking_.end(tx, unended_);
    for (auto& one : due)
      if (one.parked->starts > 0 && std::ranges::find(unended_, one.parked->id) != unended_.end())
        --one.parked->starts;
    made.ends_unended = true;
  }
  std::vector<work*> all;
  for (auto& one : due) all.push_back(&one);
  const auto ours = parking_.start(tx, all, now);
  if (ours.empty()) schedule_.all_elsewhere(now);
  for (auto* one : ours) made.messages.push_back(std::move(*one));
  return made;
}

announcement announcements::look_and_announce(transaction& tx) {
  const auto now = tx.env().now();
  return announce(tx, look(tx, now), now);
}

void announcements::committed(announcement made) {
  schedule_.announced(made.at, made.messages.size());
  if (made.ends_unended) unended_.clear();
  announced_ = std::move(made);
}

void announcements::will_not_run(const announcement& made) {
  for (const auto& one : made.messages) will_not_run(one);
}

void announcements::end_all(transaction& tx) const {
  if (!unended_.empty()) tx.execute(parking::end_of(unended_));
}

}  // namespace settle::consume
