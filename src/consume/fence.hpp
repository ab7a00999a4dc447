// Who may write the effects of a partition: whoever the broker has assigned it to last.
//
// The consumer's own database mints an epoch when the first messages of an assignment come, one higher than
// all before, and every batch holds the partition's row until it has ended. So whoever takes a partition over
// waits for the batch of the former owner, and after that the former owner finds a higher epoch than its own
// and writes nothing any more. It does not mint another one for that: only the broker knows whose the
// partition is, and it is asked (subscription::doubt).
//
// An owner that was stopped in the middle of a batch would be waited for without an end: after takeover_wait
// its session is ended, and the server rolls its batch back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "consume/work.hpp"
#include "settle/database.hpp"
#include "settle/error.hpp"

namespace settle::consume {

// Somebody else has worked on a partition since it was assigned.
class partition_lost : public error {
 public:
  partition_lost(std::uint32_t which, const std::string& name)
      : error(errc::ownership_lost, "partition " + name + " has another owner now"), partition(which) {}
  std::uint32_t partition;
};

class fence_keeper {
 public:
  fence_keeper(std::string consumer, duration takeover_wait)
      : consumer_(std::move(consumer)), takeover_wait_(takeover_wait) {}

  // Ours from now on. `owner` is an id that nobody else has: with it an epoch is minted only once, whatever
  // becomes of the answer.
  void assign(const assigned_partition& which, std::string owner);

  // Empty, if the broker has no owners.
  std::string_view name_of(std::uint32_t partition) const;
  // The partition that it was delivered from; empty likewise.
  std::string_view log_of(const work& of) const {
    return of.parked ? std::string_view(of.parked->log) : name_of(of.content.tag.partition);
  }

  // The partitions of these that have owners, each once, in one order for all processes.
  using partitions = std::vector<std::uint32_t>;
  partitions of(std::span<work* const> messages) const;
  partitions of(std::span<const delivery> messages) const;

  // When the first messages of an assignment have come, outside of a batch's transaction: who sleeps over
  // them is older than whoever takes them over. Before a batch once more, if that has failed. Costs nothing
  // for partitions that have an epoch. Names those whose former owner had not ended its work: it may have
  // died over a message. Each is named as soon as it is known, because a later one may throw.
  using left_open = std::function<void(std::uint32_t partition)>;
  void take_over(database& db, const partitions& held, const std::stop_token& cancel, const left_open& name);

  // Not ours any more, and nothing of them is under way: the next owners need not be careful.
  void release(database& db, std::span<const std::uint32_t> revoked) noexcept;
  // The same of all, in a transaction of the caller's, who forgets them when it has ended.
  void release_all(transaction& tx) const;
  // Not ours any more, because somebody else has them.
  void forget(std::uint32_t partition) { held_.erase(partition); }
  bool none_minted() const;
  // What comes of them later needs an epoch of its own.
  void forget_epochs();

  // The values of queries::consume::read_fences, which comes first in the batch's transaction, and the
  // judgement of its rows. Throws partition_lost.
  parameters row_of(const partitions& held) const;
  void check(transaction& tx, const partitions& held, const result& rows) const;

 private:
  struct holding {
    std::string name;
    std::string owner;
    std::int64_t epoch = 0;  // 0: none was minted yet
  };
  struct minted {
    std::int64_t epoch = 0;
    bool was_open = false;
  };
  void add(partitions& to, std::uint32_t which) const;
  void sort(partitions& all) const;
  minted mint(owned_transaction& tx, const holding& of) const;
  bool end_stopped_owner(database& db, const holding& of) const;

  std::string consumer_;
  duration takeover_wait_;
  std::map<std::uint32_t, holding> held_;
};

}  // namespace settle::consume
