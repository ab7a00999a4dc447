#include "settle/relay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/retry.hpp"
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
      arrivals_(outbox.watch()),
      store_(outbox::store_of(outbox, options)) {
  check(options);
}

bool relay::engine::run_once(const std::stop_token& cancel) {
  try {
    refresh_if_due(cancel);  // also while paused: an outage of the broker is no reason to lose the lease
    if (unnoted_.batches >= batches_per_note) note_progress({}, cancel);  // it failed the last time
    if (env().now() < destination_pause_.until) return false;
    auto group = next_group();
    if (!group) {
      head_ = store_->take_tick(cancel);
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

void relay::engine::refresh_if_due(const std::stop_token& cancel) {
  if (!ownership_.due()) return;
  auto tx = db_.begin(cancel);
  const auto head = store_->write_tick(tx);
  if (database_.empty()) database_ = "settle:" + tx.execute(queries::outbox::read_identity)[0][0].text();
  // Also of shares that were only looked through: noting it here costs no commit of its own, and whoever
  // takes over need not look through all of it again.
  store_->note(tx, progress());
  store_->expire(tx, expire_when_idle);
  const auto change = ownership_.refresh(tx);
  const auto cursors = store_->cursors(tx, ownership_.next_held());
  tx.commit("relay.lease");
  ownership_.applied();
  for (const int share : change.lost) {
    reached_.erase(share);
    share_pauses_.erase(share);
  }
  for (const int share : change.gained) reached_[share] = cursors.at(share);
  noted(head);
  if (!change.lost.empty() || !change.gained.empty())
    env().log->write(log_level::info, "relay_shares_changed",
                     {{"outbox", db_.name()},
                      {"member", ownership_.member()},
                      {"gained", std::to_string(change.gained.size())},
                      {"lost", std::to_string(change.lost.size())}});
  store_->keep_house(cancel);
}

// In a backlog one commit notes several batches: a crash before it only means that they are sent again.
void relay::engine::relay_window(const share_group& group, const std::stop_token& cancel) {
  auto found = store_->read(group, head_);
  previous_ = found.end;
  if (found.rows.empty()) {
    for (auto& [share, at] : reached_)
      if ((group.mask >> share & 1) != 0) at = found.end;
    return;
  }
  name_source(found.messages);
  const auto results =
      with_fault_points(env(), "relay.publish", [&] { return destination_.publish(found.messages); });
  const auto outcome = outbox::judge(group, {found.end, found.upto, found.rows}, results);
  for (const auto& [share, at] : outcome.reached) {
    if (at > group.from) unnoted_.shares |= 1U << share;
    reached_[share] = at;
  }
  ++unnoted_.batches;
  unnoted_.events += outcome.confirmed;
  pause_if_failed(outcome);
  const bool more_to_come = outcome.failures.empty() && unnoted_.batches < batches_per_note && next_group();
  if (!more_to_come) note_progress(outcome.failures, cancel);
  env().counters->add("settle_relay_published_total", {}, outcome.confirmed);
}

void relay::engine::name_source(std::vector<message>& messages) const {
  for (auto& m : messages) {
    m.source = options_.source.empty() ? database_ : options_.source;
    if (!options_.source.empty()) m.extensions["settledatabase"] = database_;
  }
}

outbox::progress relay::engine::progress() const { return {ownership_, reached_, noted_, unnoted_.shares}; }

void relay::engine::noted(const outbox::cursor& head) {
  head_ = head;
  noted_ = reached_;
  unnoted_ = {};
}

// Progress and the next tick share one commit: under load a batch costs a part of it, and the broker's.
void relay::engine::note_progress(std::span<const outbox::share_failure> failures,
                                  const std::stop_token& cancel) {
  auto tx = db_.begin(cancel);
  const auto head = store_->write_tick(tx);
  store_->note(tx, progress());
  for (const auto& failure : failures) ownership_.note_failure(tx, failure.share, failure.reason);
  store_->expire(tx, 2 * unnoted_.events);  // faster than they come in
  tx.commit("relay.progress");
  noted(head);
}

std::optional<share_group> relay::engine::next_group() const {
  if (share_pauses_.empty()) return outbox::next_group(reached_, head_, previous_);
  auto awake = reached_;
  const auto now = env().now();
  for (const auto& [share, paused] : share_pauses_)
    if (now < paused.until) awake.erase(share);
  return outbox::next_group(awake, head_, previous_);
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
  for (const auto& [share, unused] : outcome.reached) {
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

void relay::engine::lose_everything(const char* why) {
  ownership_.drop_all();
  reached_.clear();
  noted_.clear();
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
    reached_.clear();
    noted_.clear();
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
