#include "consume/fence.hpp"

#include <algorithm>
#include <utility>

#include "base/if_possible.hpp"
#include "base/json.hpp"
#include "queries/consume.hpp"

namespace settle::consume {

void fence_keeper::assign(const assigned_partition& which, std::string owner) {
  held_[which.partition] = {which.name, std::move(owner)};
}

std::string_view fence_keeper::name_of(std::uint32_t partition) const {
  const auto found = held_.find(partition);
  return found == held_.end() ? std::string_view() : found->second.name;
}

fence_keeper::partitions fence_keeper::of(std::span<work* const> messages) const {
  partitions all;
  for (const auto* one : messages)
    if (!one->parked) add(all, one->content.tag.partition);
  sort(all);
  return all;
}

fence_keeper::partitions fence_keeper::of(std::span<const delivery> messages) const {
  partitions all;
  for (const auto& one : messages) add(all, one.tag.partition);
  sort(all);
  return all;
}

void fence_keeper::add(partitions& to, std::uint32_t which) const {
  const bool seen = !to.empty() && (to.back() == which || std::ranges::find(to, which) != to.end());
  if (!seen && held_.contains(which)) to.push_back(which);
}

void fence_keeper::sort(partitions& all) const {
  std::ranges::sort(all, {}, [&](std::uint32_t which) { return name_of(which); });
}

// Each in a transaction of its own: who waits for one holds none.
void fence_keeper::take_over(database& db, const partitions& held, const std::stop_token& cancel,
                             const left_open& name) {
  for (const auto which : held) {
    auto& of = held_.at(which);
    if (of.epoch != 0) continue;
    minted now;
    auto tx = db.begin(cancel);
    try {
      now = mint(tx, of);
    } catch (const error& e) {  // it was waited for in vain
      if (e.code() != errc::store_busy || !end_stopped_owner(db, of)) throw;
      auto again = db.begin(cancel);
      now = mint(again, of);
    }
    of.epoch = now.epoch;
    if (now.was_open) name(which);
  }
}

fence_keeper::minted fence_keeper::mint(owned_transaction& tx, const holding& of) const {
  const auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(takeover_wait_).count();
  const auto found = tx.commit_with({queries::consume::take_over, {consumer_, of.name, of.owner, wait_ms}},
                                    "consumer.take_over");
  namespace columns = queries::consume::take_over_columns;
  return {found[0][columns::epoch].integer(), found[0][columns::left_open].integer() != 0};
}

void fence_keeper::release_all(transaction& tx) const {
  std::vector<parameters> all;
  for (const auto& [which, of] : held_)
    if (of.epoch != 0) all.push_back({consumer_, of.name, of.epoch});
  if (!all.empty()) tx.execute_many(queries::consume::end_work, all);
}

void fence_keeper::release(database& db, std::span<const std::uint32_t> revoked) noexcept {
  const auto is_minted = [&](std::uint32_t which) {
    const auto found = held_.find(which);
    return found != held_.end() && found->second.epoch != 0;
  };
  try {
    if (std::ranges::any_of(revoked, is_minted)) {
      auto tx = db.begin();
      for (const auto which : revoked)
        if (is_minted(which))
          tx.post(queries::consume::end_work, {consumer_, held_.at(which).name, held_.at(which).epoch});
      tx.commit("consumer.end_work");
    }
  } catch (const std::exception& e) {
    if_possible([&] {
      db.env().log->write(log_level::warning, "end_of_work_not_noted",
                          {{"consumer", consumer_}, {"error", e.what()}});
    });
  }
  for (const auto which : revoked) held_.erase(which);
}

bool fence_keeper::none_minted() const {
  return std::ranges::all_of(held_, [](const auto& one) { return one.second.epoch == 0; });
}

void fence_keeper::forget_epochs() {
  for (auto& [which, of] : held_) of.epoch = 0;
}

// True if there was one.
bool fence_keeper::end_stopped_owner(database& db, const holding& of) const {
  const auto ended = db.read().execute(queries::consume::end_stopped_owner, {consumer_, of.name, of.owner});
  for (std::size_t i = 0; i < ended.size(); ++i)
    db.env().log->write(
        log_level::warning, "stopped_owner_ended",
        {{"consumer", consumer_},
         {"partition", of.name},
         {"backend", std::to_string(ended[i][queries::consume::end_stopped_owner_columns::pid].integer())}});
  return !ended.empty();
}

parameters fence_keeper::row_of(const partitions& held) const {
  json_array names;
  for (const auto which : held) names.add(name_of(which));
  return {consumer_, names.text()};
}

// The partition's owner is checked where the effects are written: an owner that was replaced while it slept
// finds a higher epoch here and writes nothing. A lower one is a fence that went with a restore or a
// failover.
void fence_keeper::check(transaction& tx, const partitions& held, const result& rows) const {
  std::map<std::string_view, std::int64_t> stored;
  namespace columns = queries::consume::read_fences_columns;
  for (std::size_t i = 0; i < rows.size(); ++i)
    stored[rows[i][columns::partition].text()] = rows[i][columns::epoch].integer();
  for (const auto which : held) {
    const auto& of = held_.at(which);
    const auto known = stored.find(of.name);
    const auto highest = known == stored.end() ? 0 : known->second;
    if (highest == of.epoch) continue;
    const bool raised =
        highest < of.epoch &&
        tx.execute(queries::consume::raise_fence, {consumer_, of.name, of.epoch, of.owner}).affected() == 1;
    if (!raised) throw partition_lost(which, of.name);
  }
}

}  // namespace settle::consume
