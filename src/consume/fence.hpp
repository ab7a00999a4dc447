// Who may write the effects of a partition: the owner with the highest epoch, and it has to be the present
// one.
//
// An owner raises the partition's fence before its first batch, and every batch holds it until it has ended.
// So whoever takes a partition over waits for the batch of the former owner, and after that the former owner
// writes nothing any more. One that was stopped in the middle of a batch would be waited for without an end:
// after takeover_wait its session is ended, and the server rolls its batch back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "consume/work.hpp"
#include "settle/database.hpp"

namespace settle::consume {

class fence_keeper {
 public:
  fence_keeper(std::string consumer, duration takeover_wait)
      : consumer_(std::move(consumer)), takeover_wait_(takeover_wait) {}

  // A delivery of each partition and epoch, in one order for all.
  using fences = std::vector<const delivery*>;
  static fences of(std::span<work* const> messages);

  // Before a batch and outside of its transaction. Costs nothing for fences that were raised earlier. Names
  // the partitions whose former owner had not ended its work: it may have died over a message. Each is named
  // as soon as it is known, because a later one may throw.
  using left_open = std::function<void(const std::string& partition)>;
  void take_over(database& db, const fences& held, const std::stop_token& cancel, const left_open& name);

  // No message of these is under way any more: the next owners need not be careful.
  void release(database& db, std::span<const std::uint32_t> partitions) noexcept;
  // The same of all, in a transaction of the caller's, who forgets them when it has ended.
  void release_all(transaction& tx) const;
  bool empty() const { return raised_.empty(); }
  void clear() { raised_.clear(); }

  // The values of queries::consume::read_fences, which comes first in the batch's transaction, and the
  // judgement of its rows. Throws ownership_lost.
  parameters row_of(const fences& held) const;
  void check(transaction& tx, const fences& held, const result& rows) const;

 private:
  bool raise(owned_transaction& tx, const partition_fence& fence) const;
  bool end_stopped_owner(database& db, const partition_fence& fence) const;

  std::string consumer_;
  duration takeover_wait_;
  struct raised_fence {
    std::uint32_t number = 0;  // as its subscription knows it
    std::int64_t epoch = 0;
  };
  std::map<std::string, raised_fence, std::less<>> raised_;  // by partition
};

}  // namespace settle::consume
