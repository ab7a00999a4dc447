// Which of the parked messages that were announced share the next transaction. Pure.
#pragma once

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "consume/inbox.hpp"
#include "consume/plan.hpp"

namespace settle::consume {

class parked_chunks {
 public:
  // One for which `alone` holds shares a transaction with nobody.
  parked_chunks(batch messages, inbox::predicate alone) : messages_(messages), alone_(std::move(alone)) {}

  // The next ones, of at most so many places, without those whose keys are held. Empty: there are no others.
  std::vector<work*> next(std::size_t most) {
    std::vector<work*> chunk;
    while (chunk.empty() && at_ < messages_.size()) {
      const auto first = at_;
      for (; at_ < messages_.size() && at_ - first < most; ++at_) {
        const auto& m = messages_[at_]->what();
        if (at_ > first && (alone_(m) || alone_(messages_[first]->what()))) break;
        if (m.key.empty() || !held_.contains({m.topic, m.key})) chunk.push_back(messages_[at_]);
      }
    }
    return chunk;
  }

  // It is not done: it has failed, or somebody else holds it. Those behind it must not get past it.
  void hold_key_of(const work& one) { held_.emplace(one.what().topic, one.what().key); }

 private:
  batch messages_;
  inbox::predicate alone_;
  std::set<key_view> held_;
  std::size_t at_ = 0;
};

}  // namespace settle::consume
