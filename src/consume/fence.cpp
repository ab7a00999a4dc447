#include "consume/fence.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/if_possible.hpp"
#include "base/json.hpp"
#include "queries/consume.hpp"
#include "settle/error.hpp"

namespace settle::consume {

fence_keeper::fences fence_keeper::of(std::span<work* const> messages) {
  fences held;
  for (const auto* one : messages) {
    const auto same = [&](const delivery* seen) {
      return seen->tag.partition == one->content.tag.partition &&
             seen->fence.epoch == one->content.fence.epoch;
    };
    if (!one->content.fence.partition.empty() && std::ranges::none_of(held, same))
      held.push_back(&one->content);
  }
  std::ranges::sort(held, {}, [](const delivery* by) {
    return std::pair(std::string_view(by->fence.partition), by->fence.epoch);
  });
  return held;
}

// Each in a transaction of its own: who waits for one holds none.
void fence_keeper::take_over(database& db, const fences& held, const std::stop_token& cancel,
                             const left_open& name) {
  for (const auto* by : held) {
    const auto& [partition, epoch] = by->fence;
    const auto known = raised_.find(partition);
    if (known != raised_.end() && known->second.epoch >= epoch) continue;
    bool open = false;
    auto tx = db.begin(cancel);
    try {
      open = raise(tx, by->fence);
    } catch (const error& e) {  // it was waited for in vain
      if (e.code() != errc::store_busy || !end_stopped_owner(db, by->fence)) throw;
      auto again = db.begin(cancel);
      open = raise(again, by->fence);
    }
    raised_[partition] = {by->tag.partition, epoch};
    if (open) name(partition);
  }
}

// Whether its former owner was at work. If there is a newer owner, nothing changes, and the batch will find
// out.
bool fence_keeper::raise(owned_transaction& tx, const partition_fence& fence) const {
  const auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(takeover_wait_).count();
  const auto found =
      tx.commit_with({queries::consume::take_over, {consumer_, fence.partition, fence.epoch, wait_ms}},
                     "consumer.take_over");
  return !found.empty() && found[0][0].integer() != 0;
}

void fence_keeper::release_all(transaction& tx) const {
  std::vector<parameters> all;
  for (const auto& [partition, fence] : raised_) all.push_back({consumer_, partition, fence.epoch});
  if (!all.empty()) tx.execute_many(queries::consume::end_work, all);
}

void fence_keeper::release(database& db, std::span<const std::uint32_t> partitions) noexcept {
  const auto is_meant = [&](const auto& one) {
    return std::ranges::find(partitions, one.second.number) != partitions.end();
  };
  if (std::ranges::none_of(raised_, is_meant)) return;
  try {
    auto tx = db.begin();
    for (const auto& one : raised_)
      if (is_meant(one)) tx.post(queries::consume::end_work, {consumer_, one.first, one.second.epoch});
    tx.commit("consumer.end_work");
  } catch (const std::exception& e) {
    if_possible([&] {
      db.env().log->write(log_level::warning, "end_of_work_not_noted",
                          {{"consumer", consumer_}, {"error", e.what()}});
    });
  }
  std::erase_if(raised_, is_meant);
}

// True if there was one.
bool fence_keeper::end_stopped_owner(database& db, const partition_fence& fence) const {
  const auto ended =
      db.read().execute(queries::consume::end_stopped_owner, {consumer_, fence.partition, fence.epoch});
  for (std::size_t i = 0; i < ended.size(); ++i)
    db.env().log->write(log_level::warning, "stopped_owner_ended",
                        {{"consumer", consumer_},
                         {"partition", fence.partition},
                         {"backend", std::to_string(ended[i][0].integer())}});
  return !ended.empty();
}

parameters fence_keeper::row_of(const fences& held) const {
  json_array partitions;
  for (const auto* by : held) partitions.add(by->fence.partition);
  return {consumer_, partitions.text()};
}

// The partition's owner is checked where the effects are written: an owner that was replaced while it slept
// finds a higher epoch here and writes nothing. A lower one is a fence that went with a restore or a
// failover.
void fence_keeper::check(transaction& tx, const fences& held, const result& rows) const {
  std::map<std::string_view, std::int64_t> stored;
  for (std::size_t i = 0; i < rows.size(); ++i) stored[rows[i][0].text()] = rows[i][1].integer();
  for (const auto* by : held) {
    const auto& [partition, epoch] = by->fence;
    const auto known = stored.find(partition);
    const auto highest = known == stored.end() ? -1 : known->second;
    if (highest == epoch) continue;
    const bool raised =
        highest < epoch &&
        tx.execute(queries::consume::raise_fence, {consumer_, partition, epoch}).affected() == 1;
    if (!raised) throw error(errc::ownership_lost, "partition " + partition + " has another owner now");
  }
}

}  // namespace settle::consume
