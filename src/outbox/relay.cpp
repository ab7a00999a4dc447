#include "settle/relay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "base/retry.hpp"
#include "base/zoo.hpp"
#include "outbox/lanes.hpp"
#include "outbox/relay_engine.hpp"
#include "queries/outbox.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {

using outbox::share_group;
using outbox::window_outcome;

namespace {

constexpr duration retry_wait = std::chrono::milliseconds(100);
constexpr int batches_per_note = 4;
constexpr std::int64_t expire_when_idle = 1000;  // rows per renewal of the lease

void check(const relay_options& options) {
  if (options.batch_max < 1 || options.batch_max > 10'000)
    throw error(errc::invalid_argument, "relay_options.batch_max must be 1 to 10,000");
  if (options.batch_bytes_max < 1)
    throw error(errc::invalid_argument, "relay_options.batch_bytes_max must be positive");
  if (options.lease_ttl < std::chrono::milliseconds(50))
    throw error(errc::invalid_argument, "relay_options.lease_ttl must be at least 50 ms");
  if (options.outbox_keep < duration::zero() || options.natural_key_keep < options.outbox_keep)
    throw error(errc::invalid_argument,
                "relay_options.outbox_keep must not be negative, and natural_key_keep not shorter than it");
  if (options.idle_poll <= duration::zero() || options.retry_wait_max <= duration::zero())
    throw error(errc::invalid_argument, "relay_options.idle_poll and retry_wait_max must be positive");
}

}  // namespace

relay::engine::engine(database& outbox, publisher& destination, const relay_options& options)
    : db_(outbox),
      destination_(destination),
      options_(options),
      ownership_(outbox, {std::string(outbox::ownership_scope), outbox::share_count, options.lease_ttl}),
      arrivals_(outbox.watch()) {
  check(options);
}

bool relay::engine::run_once(const std::stop_token& cancel) {
  try {
    refresh_if_due(cancel);  // also while paused: an outage of the broker is no reason to lose the lease
    if (unnoted_.batches >= batches_per_note) note_progress({}, cancel);  // it failed the last time
    if (env().now() < destination_pause_.until) return false;
    auto group = next_group();
    if (!group) {
      take_tick(cancel);
      group = next_group();
    }
    if (!group) return false;
    relay_window(*group, cancel);
    return true;
  } catch (const error& e) {
    if (e.code() != errc::ownership_lost) throw;
    lose_everything(e.what());
    return true;
  }
}

// In a backlog one commit notes several batches: a crash before it only means that they are sent again.
void relay::engine::relay_window(const share_group& group, const std::stop_token& cancel) {
  const auto found = read_window(group);
  previous_ = found.end;
  if (found.rows.empty()) {
    for (auto& [share, position] : scanned_)
      if ((group.mask >> share & 1) != 0) position = found.end;
    return;
  }
  const auto results =
      with_fault_points(env(), "relay.publish", [&] { return destination_.publish(found.messages); });
  const auto outcome = outbox::judge(group, found.end, found.rows, results);
  for (const auto& [share, position] : outcome.positions) {
    if (position > group.from) unnoted_.shares |= 1U << share;
    scanned_[share] = position;
  }
  ++unnoted_.batches;
  unnoted_.events += outcome.confirmed;
  pause_if_failed(outcome);
  const bool more_to_come = outcome.failures.empty() && unnoted_.batches < batches_per_note && next_group();
  if (!more_to_come) note_progress(outcome.failures, cancel);
  env().counters->add("settle_relay_published_total", {}, outcome.confirmed);
}

void relay::engine::refresh_if_due(const std::stop_token& cancel) {
  if (!ownership_.due()) return;
  auto tx = db_.begin(cancel);
  if (database_.empty()) database_ = "settle:" + tx.execute(queries::outbox::read_identity)[0][0].text();
  // Also of shares that were only looked through: noting it here costs no commit of its own, and whoever
  // takes over need not look through all of it again.
  write_progress(tx);
  expire(tx, expire_when_idle);
  const auto change = ownership_.refresh(tx);
  tx.commit("relay.lease");
  ownership_.applied();
  unnoted_ = {};
  for (const int share : change.lost) {
    scanned_.erase(share);
    share_pauses_.erase(share);
  }
  for (const int share : change.gained) scanned_[share] = ownership_.held().at(share).position;
  if (!change.lost.empty() || !change.gained.empty())
    env().log->write(log_level::info, "relay_shares_changed",
                     {{"outbox", db_.name()},
                      {"member", ownership_.member()},
                      {"gained", std::to_string(change.gained.size())},
                      {"lost", std::to_string(change.lost.size())}});
}

// A commit of ours, synced, above every row that we are going to publish: whatever is visible below it
// survives a power cut, even if its own writer did not wait for the disk.
void relay::engine::take_tick(const std::stop_token& cancel) {
  {
    auto look = db_.read();
    const auto head = look.execute(queries::outbox::read_head);
    const auto newest = head[0][0].integer();
    const auto ticked = head[0][1].integer();
    if (zoo::has(zoo::bug::publish_before_durable)) {
      tick_ = newest;
      return;
    }
    if (ticked >= newest) {
      tick_ = ticked;
      return;
    }
  }
  auto tx = db_.begin(cancel);
  const auto ticked = tx.execute(queries::outbox::write_tick)[0][0].integer();
  tx.commit("relay.tick");
  tick_ = ticked;
}

relay::engine::window relay::engine::read_window(const share_group& group) {
  auto tx = db_.read();
  const auto sizes =
      tx.execute(queries::outbox::measure_window,
                 {group.from, tick_, group.mask, static_cast<std::int64_t>(options_.batch_max)});
  std::vector<outbox::measured_row> measured;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    measured.push_back({sizes[i][0].integer(), sizes[i][1].integer()});
  window found;
  found.end = outbox::window_end(measured, options_.batch_max, options_.batch_bytes_max, tick_);
  if (measured.empty()) return found;
  auto rows = tx.execute(queries::outbox::read_window, {group.from, found.end, group.mask});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    found.rows.push_back({rows[i][0].integer(), static_cast<int>(rows[i][1].integer())});
    found.messages.push_back(message_of(rows, i));
  }
  return found;
}

message relay::engine::message_of(result& rows, std::size_t row) {
  const auto seq = rows[row][0].integer();
  const auto& aggregate_type = rows[row][5].text();
  message m;
  m.id = rows[row][2].text();
  m.source = options_.source.empty() ? database_ : options_.source;
  m.topic = rows[row][3].text();
  m.type = rows[row][4].text();
  m.key = rows[row][6].text();
  m.subject = aggregate_type.empty() || m.key.empty() ? m.key : aggregate_type + "/" + m.key;
  m.content_type = rows[row][7].text();
  m.extensions = attributes_from_json(rows[row][8].text());
  m.extensions["sequence"] = std::to_string(seq);
  if (!options_.source.empty()) m.extensions["settledatabase"] = database_;
  m.time = rows[row][9].time();
  m.payload = rows.take(row, 10).take_bytes();
  return m;
}

// Progress and the next tick share one commit: under load a batch costs a part of it, and the broker's.
void relay::engine::note_progress(std::span<const outbox::share_failure> failures,
                                  const std::stop_token& cancel) {
  auto tx = db_.begin(cancel);
  write_progress(tx);
  for (const auto& failure : failures) ownership_.note_failure(tx, failure.share, failure.reason);
  expire(tx, 2 * unnoted_.events);  // faster than they come in
  const auto ticked = tx.execute(queries::outbox::write_tick)[0][0].integer();
  tx.commit("relay.progress");
  tick_ = ticked;
  unnoted_ = {};
}

// In a write transaction, under the fence: how far the shares have come, and when those passed that
// published.
void relay::engine::write_progress(transaction& tx) {
  ownership_.advance(tx, scanned_);
  std::map<std::int64_t, std::uint32_t> masks;  // one row per position
  for (const auto& [share, position] : scanned_)
    if ((unnoted_.shares >> share & 1) != 0) masks[position] |= 1U << share;
  for (const auto& [position, mask] : masks)
    tx.execute(queries::outbox::note_progress, {mask, position, env().now()});
}

std::optional<share_group> relay::engine::next_group() const {
  if (share_pauses_.empty()) return outbox::next_group(scanned_, tick_, previous_);
  auto awake = scanned_;
  const auto now = env().now();
  for (const auto& [share, paused] : share_pauses_)
    if (now < paused.until) awake.erase(share);
  return outbox::next_group(awake, tick_, previous_);
}

void relay::engine::pause_if_failed(const window_outcome& outcome) {
  const auto lengthen = [&](pause& one) {
    ++one.failures;
    one.until = env().now() + quadratic_wait(one.failures, retry_wait, options_.retry_wait_max);
  };
  const auto report = [&](const outbox::share_failure& failure, const pause& one) {
    const std::string fault = failure.destination ? "destination" : "message";
    env().counters->add("settle_relay_failures_total", {{"fault", fault}});
    env().log->write(log_level::warning, "relay_paused",
                     {{"outbox", db_.name()},
                      {"fault", fault},
                      {"share", failure.destination ? "all" : std::to_string(failure.share)},
                      {"failures", std::to_string(one.failures)},
                      {"reason", failure.reason}});
  };
  for (const auto& [share, unused] : outcome.positions) {
    const bool failed_again =
        std::ranges::find(outcome.failures, share, &outbox::share_failure::share) != outcome.failures.end();
    if (!failed_again) share_pauses_.erase(share);
  }
  const auto down = std::ranges::find(outcome.failures, true, &outbox::share_failure::destination);
  if (down != outcome.failures.end()) {
    lengthen(destination_pause_);
    report(*down, destination_pause_);
  } else if (destination_pause_.failures > 0) {
    destination_pause_ = {};
    env().log->write(log_level::info, "relay_resumed", {{"outbox", db_.name()}});
  }
  for (const auto& failure : outcome.failures) {
    if (failure.destination) continue;
    auto& paused = share_pauses_[failure.share];
    lengthen(paused);
    report(failure, paused);
  }
}

// Removes at most so many rows that have been published by every share and are older than their time.
void relay::engine::expire(transaction& tx, std::int64_t rows_max) {
  if (rows_max <= 0) return;
  const auto now = env().now();
  const auto remove = [&](std::int64_t looked_at) {
    const auto keep =
        tx.execute(queries::outbox::first_event_to_keep, {now - options_.outbox_keep, looked_at});
    return tx.execute(queries::outbox::delete_events_below, {keep[0][0].integer()}).affected();
  };
  if (remove(1) > 0) remove(rows_max);  // as a rule the oldest is young, and nothing else is looked at
  constexpr std::int64_t batches = 16;  // a batch leaves about one row of progress
  tx.execute(queries::outbox::delete_progress, {now - options_.outbox_keep, batches});
  tx.execute(queries::outbox::expire_natural_keys, {now - options_.natural_key_keep, rows_max});
}

void relay::engine::lose_everything(const char* why) {
  ownership_.drop_all();
  scanned_.clear();
  unnoted_ = {};
  share_pauses_.clear();
  env().counters->add("settle_relay_ownership_lost_total", {});
  env().log->write(log_level::warning, "relay_ownership_lost", {{"outbox", db_.name()}, {"error", why}});
}

duration relay::engine::idle_wait() const {
  const auto now = env().now();
  auto wait = std::min(options_.idle_poll, options_.lease_ttl / 3);
  if (destination_pause_.until > now) wait = std::min(wait, destination_pause_.until - now);
  for (const auto& [share, paused] : share_pauses_)
    if (paused.until > now) wait = std::min(wait, paused.until - now);
  return wait;
}

void relay::engine::leave() noexcept {
  try {
    if (unnoted_.batches > 0) note_progress({}, {});
  } catch (const std::exception& e) {
    env().log->write(log_level::warning, "relay_progress_failed",
                     {{"outbox", db_.name()}, {"error", e.what()}});
  }
  try {
    auto tx = db_.begin();
    ownership_.release_all(tx);
    tx.commit("relay.leave");
    ownership_.drop_all();
    scanned_.clear();
    unnoted_ = {};
  } catch (const std::exception& e) {
    env().log->write(log_level::warning, "relay_leave_failed", {{"outbox", db_.name()}, {"error", e.what()}});
  }
}

relay::relay(database& outbox, publisher& destination, const relay_options& options)
    : engine_(std::make_unique<engine>(outbox, destination, options)) {}
relay::~relay() = default;
bool relay::run_once(std::stop_token cancel) { return engine_->run_once(cancel); }
const environment& relay::env() const { return engine_->env(); }
wakeup& relay::arrivals() { return engine_->arrivals(); }
duration relay::idle_wait() const { return engine_->idle_wait(); }
void relay::leave() noexcept { engine_->leave(); }

}  // namespace settle::inline v0
