#include "consume/retention.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "base/json.hpp"
#include "base/lanes.hpp"
#include "base/zoo.hpp"
#include "queries/consume.hpp"

namespace settle::consume {
namespace {

std::optional<std::int64_t> sequence_of(const message& m) {
  const auto found = m.extensions.find("sequence");
  if (found == m.extensions.end()) return std::nullopt;
  const auto* const end = found->second.data() + found->second.size();
  std::int64_t number = 0;
  const auto [stopped, failed] = std::from_chars(found->second.data(), end, number);
  if (failed != std::errc() || stopped != end) return std::nullopt;
  return number;
}

// A partition and a source within it.
using origin_key = std::pair<std::string_view, std::string_view>;

}  // namespace

place place_of(const delivery& of) {
  const auto& m = of.content;
  const auto number = sequence_of(m);
  if (!number) return {of.fence.partition, 0, of.tag.position};
  // Two databases may publish under one source; their own ids tell them apart.
  const auto database = m.extensions.find("settledatabase");
  return {database == m.extensions.end() ? m.source : database->second, lane_of(m.key, m.id), *number};
}

retention::retention(std::string consumer, duration keep, const environment& env)
    : consumer_(std::move(consumer)), keep_(keep), env_(env) {}

std::string_view retention::log_of(const delivery& of) const {
  const auto found = std::ranges::find(settled_, of.tag.partition, &settled_partition::partition);
  return found == settled_.end() ? std::string_view() : found->log;
}

std::vector<bool> retention::beyond_horizon(transaction& tx, std::span<const recorded> fresh) const {
  std::vector<bool> beyond(fresh.size(), false);
  const auto rows = tx.execute(queries::consume::read_highest_horizons, {consumer_});
  if (rows.empty()) return beyond;
  std::map<origin_key, std::int64_t> highest;
  for (std::size_t i = 0; i < rows.size(); ++i)
    highest[{rows[i][0].text(), rows[i][1].text()}] = rows[i][2].integer();
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const auto log = log_of(*fresh[i].what);
    const auto at = place_of(*fresh[i].what);
    const auto known = highest.find({log, at.source});
    if (known == highest.end() || at.sequence > known->second) continue;  // as a rule
    const auto horizon = tx.execute(queries::consume::read_horizon, {consumer_, at.lane, log, at.source});
    beyond[i] = !horizon.empty() && at.sequence <= horizon[0][0].integer();
  }
  return beyond;
}

void retention::note(transaction& tx, std::span<const recorded> fresh) const {
  struct batch {
    std::int64_t position = 0;
    std::vector<std::string_view> ids;
    std::map<std::pair<std::string_view, int>, std::int64_t> origins;
  };
  std::map<std::string_view, batch> by_log;
  for (const auto& one : fresh) {
    auto& in = by_log[log_of(*one.what)];
    in.position = std::max(in.position, one.what->tag.position);
    in.ids.push_back(one.key);
    const auto at = place_of(*one.what);
    auto& highest = in.origins[{at.source, at.lane}];
    highest = std::max(highest, at.sequence);
  }
  std::vector<parameters> rows;
  for (const auto& [log, of] : by_log) {
    json_array ids, origins;
    for (const auto id : of.ids) ids.add(id);
    for (const auto& [where, sequence] : of.origins) {
      json_array origin;
      origin.add(where.first).add(where.second).add(sequence);
      origins.add(origin);
    }
    rows.push_back({consumer_, log, of.position, env_.now(), ids.text(), origins.text()});
  }
  tx.execute_many(queries::consume::note_batch, rows);
}

void retention::set_settled(std::vector<settled_partition> done) { settled_ = std::move(done); }

// A clock that was set back must not put the next look off.
bool retention::due() const {
  const auto now = env_.now();
  return now >= next_look_ || next_look_ - now > keep_;
}

void retention::look_again_later() {
  next_look_ = env_.now() + std::min<duration>(keep_ / 24, std::chrono::minutes(1));
}

// The first batch that has to stay, or nothing if that is the oldest.
std::optional<std::int64_t> retention::first_to_keep(transaction& tx, const settled_partition& in,
                                                     std::int64_t batches_max) const {
  const bool by_clock_alone = zoo::has(zoo::bug::retention_by_wrong_clock);
  const auto upto = by_clock_alone ? std::numeric_limits<std::int64_t>::max() : in.position;
  const auto found = tx.execute(queries::consume::first_batch_to_keep,
                                {consumer_, in.log, env_.now() - keep_, upto, batches_max});
  const auto keep = found[0][0].integer();
  const auto oldest = found[0][1].integer();
  return keep > oldest ? std::optional(keep) : std::nullopt;
}

bool retention::has_expired(transaction& tx) {
  const bool found =
      std::ranges::any_of(settled_, [&](const auto& in) { return first_to_keep(tx, in, 1).has_value(); });
  if (!found) look_again_later();
  return found;
}

std::int64_t retention::expire(transaction& tx, std::int64_t batches_max) {
  std::int64_t gone = 0;
  for (const auto& in : settled_) {
    const auto keep = first_to_keep(tx, in, batches_max);
    if (!keep) continue;
    if (!zoo::has(zoo::bug::retention_by_wrong_clock))
      tx.execute(queries::consume::raise_horizons, {consumer_, in.log, *keep});
    gone += tx.execute(queries::consume::delete_records_below, {consumer_, in.log, *keep}).affected();
    tx.execute(queries::consume::delete_batches_below, {consumer_, in.log, *keep});
  }
  if (gone == 0) look_again_later();
  return gone;
}

}  // namespace settle::consume
