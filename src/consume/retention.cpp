#include "consume/retention.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/encoding.hpp"
#include "base/json.hpp"
#include "base/packed.hpp"
#include "consume/seams.hpp"
#include "queries/consume.hpp"
#include "settle/error.hpp"

namespace settle::consume {
namespace {

namespace batch_columns = queries::consume::first_batch_to_keep_columns;
static_assert(batch_columns::all == queries::consume::first_young_batch_columns::all);

constexpr duration elsewhere_wait = std::chrono::milliseconds(100);  // while another process expires

// A partition and a source within it.
using origin_key = std::pair<std::string_view, std::string_view>;

std::string to_json(std::span<const log_places> logs) {
  json_array all;
  for (const auto& of : logs) {
    json_array sources;
    for (const auto& [source, highest] : of.sources) {
      json_array lanes;
      for (const auto& [lane, order] : highest) lanes.add_pair(lane, order);
      sources.add(json_array().add(source).add(lanes));
    }
    all.add(json_array().add(of.log).add(to_hex(of.position)).add(sources));
  }
  return all.text();
}

}  // namespace

value list_of_keys(std::span<const std::string_view> keys, dialect of) {
  if (of == dialect::sqlite) return blob{pack_keys(keys)};
  json_array all;
  for (const auto key : keys) all.add(key);
  return all.text();
}

retention::retention(std::string consumer, duration keep, const database& in)
    : consumer_(std::move(consumer)), keep_(keep), env_(in.env()), speaks_(in.speaks()) {}

std::string_view retention::log_of(const delivery& of) const {
  const auto found = std::ranges::find(settled_, of.tag.partition, &settled_partition::partition);
  return found == settled_.end() ? std::string_view() : found->log;
}

std::vector<bool> retention::beyond_horizon(transaction& tx, const result& highest_rows,
                                            std::span<const recorded> fresh) const {
  std::vector<bool> beyond(fresh.size(), false);
  if (highest_rows.empty()) return beyond;
  namespace columns = queries::consume::read_highest_horizons_columns;
  std::map<origin_key, std::string_view> highest;
  for (std::size_t i = 0; i < highest_rows.size(); ++i)
    highest[{highest_rows[i][columns::log].text(), highest_rows[i][columns::source].text()}] =
        highest_rows[i][columns::place].text();
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const auto log = log_of(*fresh[i].what);
    const auto& at = fresh[i].at;
    if (at.order.empty()) continue;
    const auto known = highest.find({log, at.source});
    if (known == highest.end() || at.order > known->second) continue;  // as a rule
    const auto horizon = tx.execute(queries::consume::read_horizon, {consumer_, at.lane, log, at.source});
    beyond[i] =
        !horizon.empty() && at.order <= horizon[0][queries::consume::read_horizon_columns::place].text();
  }
  return beyond;
}

void retention::note(transaction& tx, std::span<const recorded> fresh, value keys) const {
  batch_places places;
  for (const auto& one : fresh) places.add(log_of(*one.what), one.what->at, one.at);
  const auto logs = places.take();
  auto packed = speaks_ == dialect::sqlite ? value(blob{pack_places(logs)}) : value(to_json(logs));
  if (!numbered_) tx.post(queries::consume::number_consumer, {consumer_});
  tx.post(queries::consume::note_batch, {consumer_, env_.now(), std::move(keys), std::move(packed)});
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
std::optional<std::int64_t> retention::first_to_keep(transaction& tx, std::int64_t batches_max) const {
  const auto& look = records_outlast_redelivery() ? queries::consume::first_batch_to_keep
                                                  : queries::consume::first_young_batch;
  const auto found = tx.execute(look, {consumer_, env_.now() - keep_, batches_max});
  const auto keep = found[0][batch_columns::keep].integer();
  const auto oldest = found[0][batch_columns::oldest].integer();
  return keep > oldest ? std::optional(keep) : std::nullopt;
}

// In any transaction: whether a batch is old enough. What the broker is done with is asked afterwards.
bool retention::has_old(transaction& tx) {
  const auto found = tx.execute(queries::consume::first_young_batch, {consumer_, env_.now() - keep_, 1});
  const bool old = found[0][batch_columns::keep].integer() > found[0][batch_columns::oldest].integer();
  if (!old) look_again_later();
  return old;
}

void retention::note_settled(transaction& tx) const {
  std::vector<parameters> done;
  for (const auto& in : settled_) done.push_back({consumer_, in.log, to_hex(in.through.bytes())});
  tx.execute_many(queries::consume::note_settled, done);
}

bool retention::may_expire(transaction& tx) {
  if (!due()) return false;
  const auto found = tx.execute(queries::consume::try_to_expire, {consumer_});
  const bool alone = found[0][queries::consume::try_to_expire_columns::alone].integer() != 0;
  if (!alone) next_look_ = env_.now() + elsewhere_wait;
  return alone;
}

std::int64_t retention::expire(transaction& tx, std::int64_t batches_max) {
  note_settled(tx);
  const auto keep = first_to_keep(tx, batches_max);
  if (!keep) {
    look_again_later();
    return 0;
  }
  if (records_outlast_redelivery()) tx.execute(queries::consume::raise_horizons, {consumer_, *keep});
  const auto gone = tx.execute(queries::consume::delete_records_below, {consumer_, *keep}).affected();
  tx.execute(queries::consume::delete_batches_below, {consumer_, *keep});
  return gone;
}

}  // namespace settle::consume
