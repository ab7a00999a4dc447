// Which handler a message goes to.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "settle/consume.hpp"

namespace settle::consume {

struct handler {
  consumer::raw_handler each;
  consumer::raw_batch_handler all;  // one of the two
  bool alone = false;               // never in a transaction with others
};

class handler_table {
 public:
  void add(std::string_view topic, std::string_view type, handler what) {
    if (!what.each && !what.all)
      throw error(errc::invalid_argument, "the handler for " + std::string(type) + " on " +
                                              std::string(topic) + " is an empty function");
    const auto added = by_topic_[std::string(topic)].emplace(type, std::move(what));
    if (!added.second)
      throw error(errc::invalid_argument,
                  "there is already a handler for " + std::string(type) + " on " + std::string(topic));
  }

  // Null if it has none. Asked several times for each message, and most are of the same kind.
  const handler* of(const message& m) const {
    if (last_.what != nullptr && m.type == last_.type && m.topic == last_.topic) return last_.what;
    const auto topic = by_topic_.find(m.topic);
    if (topic == by_topic_.end()) return nullptr;
    auto found = topic->second.find(m.type);
    if (found == topic->second.end()) found = topic->second.find("");
    if (found == topic->second.end()) return nullptr;
    if (!found->first.empty()) last_ = {topic->first, found->first, &found->second};
    return &found->second;
  }

  // Never in a transaction with others.
  bool runs_alone(const message& m) const;

  std::vector<subscribed> all() const {
    std::vector<subscribed> found;
    for (const auto& [topic, by_type] : by_topic_)
      for (const auto& [type, unused] : by_type) found.push_back({topic, type});
    return found;
  }

  std::vector<std::string> topics() const {
    std::vector<std::string> all;
    for (const auto& [topic, unused] : by_topic_) all.push_back(topic);
    return all;
  }

 private:
  using by_type = std::map<std::string, handler, std::less<>>;
  std::map<std::string, by_type, std::less<>> by_topic_;  // nothing is ever removed
  struct asked {
    std::string_view topic, type;
    const handler* what = nullptr;
  };
  mutable asked last_;
};

}  // namespace settle::consume
