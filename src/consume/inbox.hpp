// Messages in memory between fetch and acknowledgement, and what may run next. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory_resource>
#include <span>
#include <vector>

#include "consume/work.hpp"

namespace settle::consume {

class inbox {
 public:
  void add(std::vector<delivery> arrived);

  // Forgets everything of these partitions.
  void revoke(std::span<const std::uint32_t> partitions);

  // Up to `most` messages that may run now in one transaction, in order of arrival. One for which `alone`
  // holds shares it with nobody.
  using predicate = std::function<bool(const message&)>;
  std::vector<work*> next_batch(std::size_t most, const predicate& alone, timestamp now);

  // One message to try whether an outage is over: the first that was not tried yet, unless it waits for one
  // of its key; else the first.
  std::vector<work*> probe(timestamp now);
  // Whether one is there that was not tried. If not, others may tell more: what fails may fail for its own
  // sake.
  bool has_untried(timestamp now) { return untried(now) != nullptr; }

  // Another process works on the keys of these: they, and later ones of their keys, are left alone until
  // then.
  void put_off(std::span<work* const> messages, timestamp until);
  timestamp put_off_until() const { return put_off_until_; }
  // How many may run now.
  std::size_t ready(timestamp now);

  void finished(std::span<work* const> done);

  void clear() { messages_.clear(); }
  std::size_t size() const { return messages_.size(); }

 private:
  work* untried(timestamp now);
  // Calls `each` for those that may run now, until it returns false.
  void for_ready(timestamp now, const std::function<bool(work&)>& each);

  timestamp put_off_until_{};  // of all of them the latest

  std::pmr::unsynchronized_pool_resource nodes_;  // used again: as many come as go
  std::pmr::list<work> messages_{&nodes_};        // addresses stay valid while others come and go
};

}  // namespace settle::consume
