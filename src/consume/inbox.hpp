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

  // Up to `most` messages that may run in one transaction, in order of arrival. One for which `alone` holds
  // shares it with nobody.
  using predicate = std::function<bool(const message&)>;
  std::vector<work*> next_batch(std::size_t most, const predicate& alone);

  // One message to try whether an outage is over: the first that was not tried yet, unless it waits for one
  // of its key; else the first.
  std::vector<work*> probe();

  void finished(std::span<work* const> done);

  void clear() { messages_.clear(); }
  std::size_t size() const { return messages_.size(); }

 private:
  std::pmr::unsynchronized_pool_resource nodes_;  // used again: as many come as go
  std::pmr::list<work> messages_{&nodes_};        // addresses stay valid while others come and go
};

}  // namespace settle::consume
