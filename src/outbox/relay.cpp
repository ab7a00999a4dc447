#include "settle/relay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/if_possible.hpp"
#include "base/sortable.hpp"
#include "outbox/lanes.hpp"
#include "outbox/relay_engine.hpp"
#include "queries/outbox.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {

using outbox::share_group;
using outbox::window_outcome;

namespace {

// What a crash makes it send again is bounded by both.
constexpr int batches_per_note = 16;
constexpr duration note_within = std::chrono::milliseconds(100);
constexpr duration shortest_poll = std::chrono::milliseconds(2);
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
  if (options.attempts_max < 1)
    throw error(errc::invalid_argument, "relay_options.attempts_max must be at least 1");
  if (options.idle_poll <= duration::zero() || options.retry_wait_max <= duration::zero())
    throw error(errc::invalid_argument, "relay_options.idle_poll and retry_wait_max must be positive");
}

// Under which consumers know a row of a window.
std::string place_of(const message& m, const outbox::window_row& row) {
  const auto said = m.extensions.find("settleplace");
  return said == m.extensions.end() ? sortable({row.seq}) : said->second;
}

// From when an event could be sent, as far as its row tells, to now. Of rows that no share has to send again.
time_counts delays_of(const outbox::window& found, std::span<const outbox::fate> fates,
                      const window_outcome& outcome, timestamp now) {
  time_counts delays;
  for (std::size_t i = 0; i < fates.size(); ++i) {
    if (fates[i] != outbox::fate::confirmed) continue;
    const auto& row = found.rows[i];
    const auto stopped = outcome.stopped.find(row.share);
    if (stopped != outcome.stopped.end() && i > stopped->second) continue;
    delays.add(now - std::max(found.messages[i].time, row.deliver_at.value_or(timestamp())));
  }
  return delays;
}

}  // namespace

relay::engine::engine(database& outbox, publisher& destination, const relay_options& options)
    : db_(outbox),
      destination_(destination),
      options_(options),
      ownership_(outbox, {std::string(outbox::ownership_scope), outbox::share_count, options.lease_ttl}),
      arrivals_(outbox.watch()),
      store_(outbox::store_of(outbox, options)),
      held_(outbox, ownership_, options),
      headers_(outbox),
      pause_({.longest = options.retry_wait_max}) {
  check(options);
}

bool relay::engine::run_once(const std::stop_token& cancel) {
  try {
    refresh_if_due(cancel);  // also while paused: an outage of the broker is no reason to lose the lease
    if (unnoted_.due) note_progress(cancel);  // it failed the last time
    if (!pause_.may_try(env().now())) return false;
    if (relay_held(cancel)) return true;
    auto group = next_group();
    if (!group) {
      if (unnoted_.batches > 0)
        note_progress(cancel);  // takes a tick, too
      else
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
  if (database_.empty())
    database_ =
        "settle:" +
        tx.execute(queries::outbox::read_identity)[0][queries::outbox::read_identity_columns::database_id]
            .text();
  // Also of shares that were only looked through: noting it here costs no commit of its own, and whoever
  // takes over need not look through all of it again.
  write_progress(tx);
  store_->expire(tx, expire_when_idle);
  const auto change = ownership_.refresh(tx, in_doubt());
  std::map<int, outbox::cursor> cursors;
  if (!change.gained.empty()) cursors = store_->cursors(tx, ownership_.next_held());
  held_.reload(tx, ownership_.next_held(), !change.gained.empty());
  tx.commit("relay.lease");
  ownership_.applied();
  for (const int share : change.lost) {
    reached_.erase(share);
    maybe_sent_.erase(share);
  }
  for (const int share : change.gained) {
    reached_[share] = maybe_sent_[share] = cursors.at(share);
  }
  for (const int share : change.taken_over) maybe_sent_[share] = head;
  noted(head);
  if (!change.lost.empty() || !change.gained.empty())
    env().log->write(log_level::info, "relay_shares_changed",
                     {{"outbox", db_.name()},
                      {"member", ownership_.member()},
                      {"gained", std::to_string(change.gained.size())},
                      {"lost", std::to_string(change.lost.size())}});
  store_->keep_house(cancel);
}

// Those that were held and are due now; between two windows, so that neither keeps the other waiting. Their
// places are behind what their share has delivered, so all of that must be durable, and nothing of it to come
// again.
bool relay::engine::relay_held(const std::stop_token& cancel) {
  const auto due = held_.book().next_due();
  if (!due || *due > env().now() || std::exchange(held_had_its_turn_, !held_had_its_turn_)) return false;
  if (!is_noted()) note_progress(cancel);
  auto settled = reached_;
  for (const int share : in_doubt()) settled.erase(share);
  auto found = held_.release(settled, cancel);
  if (found.rows.empty()) return false;
  headers_.finish(found.messages, found.changed);
  const auto results = publish(found.messages, cancel);
  const auto fates = outbox::fates_of(found.messages, results);
  pause_if_failed(fates, results);
  const auto confirmed = held_.conclude(found, fates, results, cancel);
  env().counters->add("settle_relay_published_total", {}, confirmed);
  return true;
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
  last_arrival_ = env().now();
  headers_.finish(found.messages, found.changed);
  std::vector<publish_result> results;  // by row
  std::vector<outbox::fate> fates;
  try {
    fates = publish_window(found, results, cancel);
  } catch (...) {  // nobody knows what was stored
    for (auto& [share, upto] : maybe_sent_)
      if ((group.mask >> share & 1) != 0) upto = std::max(upto, found.end);
    throw;
  }
  const auto outcome = outbox::judge(group, {found.end, found.upto, found.rows, fates});
  for (const auto& [share, at] : outcome.reached) {
    if (at > group.from) unnoted_.shares |= 1U << share;
    reached_[share] = at;
  }
  if (!outcome.stopped.empty())
    previous_ = group.from;  // those who went on do not wait for those who could not
  hold({group, found, outcome}, fates, results);
  ++unnoted_.batches;
  unnoted_.events += outcome.confirmed;
  for (const auto& [share, row] : outcome.stopped) {
    unnoted_.failures[share] = results[row].reason;
    maybe_sent_[share] = std::max(maybe_sent_[share], found.end);
  }
  pause_if_failed(fates, results);
  env().counters->add("settle_relay_published_total", {}, outcome.confirmed);
  env().counters->add_times("settle_relay_publish_delay_seconds", {},
                            delays_of(found, fates, outcome, env().now()));
  const bool clean = outcome.stopped.empty() && outcome.to_hold.empty();
  if (unnoted_.batches == 1) unnoted_.since = env().now();
  const bool enough = unnoted_.batches >= batches_per_note || env().now() - unnoted_.since >= note_within;
  unnoted_.due = !clean || enough || !next_group();
  if (unnoted_.due) note_progress(cancel);
}

std::vector<publish_result> relay::engine::publish(std::vector<message>& messages,
                                                   const std::stop_token& cancel) {
  name_source(messages);
  auto results = with_fault_points(env(), "relay.publish", [&] {
    return destination_.publish(messages, {options_.publish_timeout, cancel});
  });
  outbox::check_answers(messages.size(), results.size());
  return results;
}

// Sends what may go now. As a rule that is all of it.
std::vector<outbox::fate> relay::engine::publish_window(outbox::window& found,
                                                        std::vector<publish_result>& results,
                                                        const std::stop_token& cancel) {
  using outbox::fate;
  const auto now = env().now();
  std::vector<fate> fates(found.rows.size(), fate::confirmed);
  const bool any_blocked = held_.book().blocks_any();
  for (std::size_t i = 0; i < fates.size(); ++i) {
    const auto& row = found.rows[i];
    if (row.deliver_at && *row.deliver_at > now)
      fates[i] = fate::delayed;
    else if (any_blocked && held_.book().blocks({row.share, found.messages[i].topic, found.messages[i].key}))
      fates[i] = fate::behind;
  }
  const bool all = std::ranges::all_of(fates, [](fate one) { return one == fate::confirmed; });
  if (all) {
    results = publish(found.messages, cancel);
    return outbox::fates_of(found.messages, results);
  }
  std::vector<message> now_to_send;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < fates.size(); ++i)
    if (fates[i] == fate::confirmed) {
      now_to_send.push_back(found.messages[i]);
      rows.push_back(i);
    }
  results.resize(fates.size());
  if (rows.empty()) return fates;
  auto sent = publish(now_to_send, cancel);
  const auto sent_fates = outbox::fates_of(now_to_send, sent);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    fates[rows[n]] = sent_fates[n];
    results[rows[n]] = std::move(sent[n]);
  }
  return fates;
}

void relay::engine::hold(const sent_window& of, std::span<const outbox::fate> fates,
                         std::span<const publish_result> results) {
  using outbox::fate;
  for (const auto i : of.outcome.to_hold) {
    const auto& row = of.found.rows[i];
    const auto& m = of.found.messages[i];
    auto& held = unnoted_.held.emplace_back(outbox::held_event{
        row.seq, of.found.upto, {row.share, m.topic, m.key}, fates[i], {}, results[i].reason, {}});
    if (fates[i] == fate::delayed) held.next_at = *row.deliver_at;
    if (fates[i] == fate::rejected) held.next_at = held_.after_rejection(m, 1, results[i].reason);
    if (fates[i] == fate::unwanted) held.next_at = held_.after_no_taker(m.topic, results[i].reason);
    if (of.group.from < maybe_sent_.at(row.share) && fates[i] != fate::delayed) held.place = place_of(m, row);
    held_.hold(held);
  }
}

void relay::engine::name_source(std::vector<message>& messages) const {
  for (auto& m : messages) {
    m.source = options_.source.empty() ? database_ : options_.source;
    if (!options_.source.empty()) m.extensions["settledatabase"] = database_;
  }
}

// What the windows have passed without sending it is written with the cursors that pass it.
void relay::engine::write_progress(transaction& tx) {
  store_->note(tx, {ownership_, reached_, noted_, unnoted_.shares});
  held_.insert(tx, unnoted_.held);
}

void relay::engine::noted(const outbox::cursor& head) {
  head_ = head;
  noted_ = reached_;
  unnoted_ = {};
}

// Progress and the next tick share one commit: under load a batch costs a part of it, and the broker's.
void relay::engine::note_progress(const std::stop_token& cancel) {
  auto tx = db_.begin(cancel);
  const auto head = store_->write_tick(tx);
  write_progress(tx);
  for (const auto& [share, reason] : unnoted_.failures) ownership_.note_failure(tx, share, reason);
  store_->expire(tx, 2 * unnoted_.events);  // faster than they come in
  tx.commit("relay.progress");
  noted(head);
}

std::set<int> relay::engine::in_doubt() const {
  std::set<int> shares;
  for (const auto& [share, at] : reached_)
    if (at < maybe_sent_.at(share)) shares.insert(share);
  return shares;
}

std::optional<share_group> relay::engine::next_group() const {
  return outbox::next_group(reached_, head_, previous_);
}

void relay::engine::pause_if_failed(std::span<const outbox::fate> fates,
                                    std::span<const publish_result> results) {
  const auto down = std::ranges::find(fates, outbox::fate::unknown);
  if (down == fates.end()) {
    const bool confirmed = std::ranges::find(fates, outbox::fate::confirmed) != fates.end();
    if (!confirmed || !pause_.lasts()) return;
    pause_.ends(env().now());
    env().log->write(log_level::info, "relay_resumed", {{"outbox", db_.name()}});
    return;
  }
  const bool tell = pause_.goes_on(env().now());
  env().counters->add("settle_relay_failures_total", {{"fault", "destination"}});
  if (!tell) return;
  env().log->write(log_level::warning, "relay_paused",
                   {{"outbox", db_.name()},
                    {"failures", std::to_string(pause_.failures())},
                    {"reason", results[static_cast<std::size_t>(down - fates.begin())].reason}});
}

void relay::engine::lose_everything(const char* why) {
  ownership_.drop_all();
  reached_.clear();
  noted_.clear();
  unnoted_ = {};
  maybe_sent_.clear();
  held_.forget_all();
  env().counters->add("settle_relay_ownership_lost_total", {});
  env().log->write(log_level::warning, "relay_ownership_lost", {{"outbox", db_.name()}, {"error", why}});
}

duration relay::engine::idle_wait() const {
  const auto now = env().now();
  auto wait = std::min(options_.idle_poll, options_.lease_ttl / 3);
  // While events flow, those that nobody announces are looked for often: each pause is a part of the silence.
  if (store_->commits_unnoticed() && last_arrival_ <= now)  // else the clock was set back
    wait = std::min(wait, std::max<duration>((now - last_arrival_) / 4, shortest_poll));
  if (!pause_.may_try(now)) return std::min(wait, pause_.until() - now);
  if (const auto due = held_.book().next_due()) wait = std::clamp(*due - now, duration::zero(), wait);
  return wait;
}

void relay::engine::leave() noexcept {
  try {
    if (!is_noted()) note_progress({});
  } catch (const std::exception& e) {  // then nothing is given back either: whoever takes over is to know
    if_possible([&] {
      env().log->write(log_level::warning, "relay_progress_failed",
                       {{"outbox", db_.name()}, {"error", e.what()}});
    });
    return;
  }
  try {
    auto tx = db_.begin();
    ownership_.release_all(tx, in_doubt());
    tx.commit("relay.leave");
    ownership_.drop_all();
    reached_.clear();
    noted_.clear();
    unnoted_ = {};
    maybe_sent_.clear();
  } catch (const std::exception& e) {
    if_possible([&] {
      env().log->write(log_level::warning, "relay_leave_failed",
                       {{"outbox", db_.name()}, {"error", e.what()}});
    });
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
