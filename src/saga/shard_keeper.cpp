#include "saga/shard_keeper.hpp"

#include <utility>

#include "base/json.hpp"
#include "queries/saga.hpp"
#include "saga/store.hpp"
#include "settle/error.hpp"

namespace settle::sagas {

shard_keeper::shard_keeper(database& db, settings with)
    : db_(db),
      settings_(std::move(with)),
      owned_(db, {.scope = "saga." + settings_.name, .shares = shards, .lease_ttl = settings_.lease_ttl}) {}

std::vector<int> shard_keeper::refresh(const std::stop_token& cancel) {
  std::vector<int> lost;
  if (owned_.due()) {
    auto tx = db_.begin(cancel);
    owned_.refresh(tx);
    tx.commit("saga.refresh");
    owned_.applied();
  }
  const auto& held = owned_.held();
  for (auto one = fenced_.begin(); one != fenced_.end();) {
    const auto still = held.find(one->first);
    if (still != held.end() && still->second.epoch == one->second) {
      ++one;
      continue;
    }
    lost.push_back(one->first);
    one = fenced_.erase(one);
  }
  for (const auto& [shard, holding] : held)
    if (!fenced_.contains(shard) && raise(shard, holding.epoch, cancel)) fenced_[shard] = holding.epoch;
  note_held();
  return lost;
}

// Sagas whose calls only the former owner would have had the answers of are looked at, whoever that was.
bool shard_keeper::raise(int shard, std::int64_t epoch, const std::stop_token& cancel) {
  const auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(settings_.takeover_wait).count();
  const auto once = [&] {
    auto tx = db_.begin(cancel);
    const auto raised = tx.execute(queries::saga::raise_fence, {settings_.kind, shard, epoch, wait_ms});
    if (raised.affected() == 0) return false;
    tx.post(queries::saga::wake_calling, {settings_.kind, shard});
    tx.commit("saga.take_over");
    return true;
  };
  try {
    return once();
  } catch (const error& e) {  // it was waited for in vain
    if (e.code() != errc::store_busy || !end_stopped_owner(shard)) throw;
  }
  return once();
}

bool shard_keeper::end_stopped_owner(int shard) {
  const auto ended = db_.read().execute(queries::saga::end_stopped_owner, {settings_.kind, shard});
  for (std::size_t i = 0; i < ended.size(); ++i)
    db_.env().log->write(
        log_level::warning, "stopped_saga_owner_ended",
        {{"kind", settings_.name},
         {"shard", std::to_string(shard)},
         {"backend", std::to_string(ended[i][queries::saga::end_stopped_owner_columns::pid].integer())}});
  return !ended.empty();
}

void shard_keeper::note_held() {
  std::vector<std::int64_t> all;
  for (const auto& [shard, epoch] : fenced_) all.push_back(shard);
  list_ = json_list(all);
}

statement shard_keeper::fence(const std::set<int>& of) const {
  const std::vector<std::int64_t> all(of.begin(), of.end());
  return {queries::saga::read_fences, {settings_.kind, json_list(all)}};
}

void shard_keeper::check(const std::set<int>& of, const result& fences) const {
  namespace columns = queries::saga::read_fences_columns;
  std::map<int, std::int64_t> stored;
  for (std::size_t i = 0; i < fences.size(); ++i)
    stored[static_cast<int>(fences[i][columns::shard].integer())] = fences[i][columns::epoch].integer();
  for (const int shard : of) {
    const auto found = stored.find(shard);
    if (found == stored.end() || found->second != fenced_.at(shard))
      throw error(errc::ownership_lost, "shard " + std::to_string(shard) + " of the sagas " + settings_.name +
                                            " has another owner now");
  }
}

void shard_keeper::drop_all() {
  owned_.drop_all();
  fenced_.clear();
  note_held();
}

}  // namespace settle::sagas
