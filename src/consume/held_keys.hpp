// Keys that another process works on, and since when, as far as this one knows. Pure.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "consume/plan.hpp"
#include "consume/work.hpp"

namespace settle::consume {

class held_keys {
 public:
  // A look at a batch's keys has found that others have these. Which of its messages are theirs.
  std::vector<work*> note(batch messages, const std::set<key_view>& held, timestamp now);
  bool none_known() const { return since_.empty(); }

  // Names topic and key of those that others have had for so long, and counts from now on again.
  using each_key = std::function<void(const std::string& topic, const std::string& key)>;
  void for_overdue(timestamp now, duration too_long, const each_key& each);

  void forget() { since_.clear(); }

 private:
  std::map<std::pair<std::string, std::string>, timestamp> since_;  // by topic and key
};

}  // namespace settle::consume
