#include "lock/engine.hpp"

#include <algorithm>
#include <system_error>

#include "base/pause.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0 {
namespace {

using phase = held_lock::state::phase;

// The loop looks at least so often, also if nothing is due for longer.
constexpr duration look_max = std::chrono::seconds(5);
// For ever, as a time that can be added to a clock.
constexpr duration wait_max = std::chrono::hours(24) * 3660;

}  // namespace

bool held_lock::state::renew() {
  const auto asked_at = home->store->env().now();
  {
    const std::scoped_lock lock(mutex);
    if (now != phase::held) return false;
  }
  if (!home->store->renew({&what, 1})[0]) {
    note_loss(lock_loss::taken);
    return false;
  }
  const std::scoped_lock lock(mutex);
  times = locking::lease_from(asked_at, what.ttl);
  return now == phase::held;
}

release_outcome held_lock::state::release() {
  {
    // Whoever has it now has not taken it from this owner.
    const std::scoped_lock lock(mutex);
    if (now == phase::released) return release_outcome::released;
  }
  const auto change = [this](phase from, phase to) {
    const std::scoped_lock lock(mutex);
    if (now == from) now = to;
  };
  change(phase::held, phase::releasing);
  bool was_ours = false;
  try {
    was_ours = home->store->release(what);
  } catch (...) {
    change(phase::releasing, phase::held);
    throw;
  }
  if (was_ours)
    change(phase::releasing, phase::released);
  else
    note_loss(lock_loss::taken, phase::releasing);
  home->line.released(what.name);
  return was_ours ? release_outcome::released : release_outcome::lost;
}

void held_lock::state::note_loss(lock_loss why, phase from) {
  {
    const std::scoped_lock lock(mutex);
    if (now != from) return;
    now = phase::lost;
  }
  const auto& env = home->store->env();
  env.counters->add("settle_locks_lost_total", {{"why", to_string(why)}});
  env.log->write(log_level::warning, "lock_lost",
                 {{"lock", what.name}, {"why", std::string(to_string(why))}});
  try {
    if (on_lost) on_lost(what.name, why);
  } catch (const std::exception& e) {
    env.log->write(log_level::error, "lock_callback_failed", {{"lock", what.name}, {"error", e.what()}});
  }
}

lock_service::state_or_holder lock_service::engine::take(const std::string& name, const lock_options& with) {
  const auto& env = store->env();
  const auto owner = env.ids->next();
  const auto asked_at = env.now();
  const auto got = store->acquire(name, owner, with.ttl);
  env.counters->add("settle_locks_asked_total", {{"outcome", got.taken ? "taken" : "held"}});
  if (!got.taken) return got.holder;
  auto made = std::make_shared<state>();
  made->home = shared_from_this();
  made->what = {name, got.holder.token, with.ttl};
  made->wants_renewal = with.renew;
  made->on_lost = with.on_lost;
  made->times = locking::lease_from(asked_at, with.ttl);
  if (with.renew || with.on_lost) watch(made);
  return made;
}

lock_service::state_or_holder lock_service::engine::wait_for(const std::string& name, duration at_most,
                                                             const lock_options& with,
                                                             const std::stop_token& stop) {
  using steady = std::chrono::steady_clock;
  const auto until = steady::now() + std::clamp(at_most, duration::zero(), wait_max);
  locking::waiting_line::place own(line, name);
  const bool first = own.await_first(until, stop);
  for (int looks = 0;; ++looks) {
    if (stop.stop_requested()) throw error(errc::cancelled, "stopped while waiting for the lock " + name);
    auto found = take(name, with);
    const auto left = std::chrono::duration_cast<duration>(until - steady::now());
    if (found.index() == 0 || !first || left <= duration::zero()) return found;
    own.doze(std::min(left, locking::poll_wait(looks, options.poll_max, store->env().random->next())), stop);
  }
}

void lock_service::engine::watch(const std::shared_ptr<state>& one) {
  {
    const std::scoped_lock lock(mutex_);
    watched_.push_back(one);
  }
  arrivals.ring();
}

// Those that are held; the others are forgotten.
lock_service::engine::held_ones lock_service::engine::watched() const {
  const std::scoped_lock lock(mutex_);
  held_ones all;
  std::erase_if(watched_, [&](const std::weak_ptr<state>& known) {
    const auto one = known.lock();
    if (!one) return true;
    const std::scoped_lock lock_of_one(one->mutex);
    if (one->now == phase::held) all.push_back(one);
    return one->now == phase::lost || one->now == phase::released;
  });
  return all;
}

// In one transaction, sorted: two processes must not wait for each other.
void lock_service::engine::renew_all(held_ones due) {
  if (due.empty()) return;
  std::ranges::sort(due, {}, [](const auto& one) -> const std::string& { return one->what.name; });
  std::vector<locking::holding> all;
  for (const auto& one : due) all.push_back(one->what);
  const auto asked_at = store->env().now();
  const auto ours = store->renew(all);
  for (std::size_t i = 0; i < due.size(); ++i) {
    if (!ours[i]) {
      due[i]->note_loss(lock_loss::taken);
      continue;
    }
    const std::scoped_lock lock(due[i]->mutex);
    due[i]->times = locking::lease_from(asked_at, due[i]->what.ttl);
  }
}

void lock_service::engine::note_expired(const held_ones& all, timestamp at) {
  for (const auto& one : all) {
    std::unique_lock lock(one->mutex);
    const bool expired = one->times.expires_at <= at;
    lock.unlock();
    if (expired) one->note_loss(lock_loss::expired);
  }
}

// A renewal that hangs does not keep those from their word that expire meanwhile. Those that have expired
// before it are not among them: it may still find them their owners'.
void lock_service::engine::tell_in_time(const held_ones& all, const std::stop_token& renewed) const {
  while (!renewed.stop_requested()) {
    const auto now = store->env().now();
    note_expired(all, now);
    auto wait = look_max;
    for (const auto& one : all) {
      const std::scoped_lock lock(one->mutex);
      if (one->now == phase::held)
        wait = std::min(wait, std::chrono::duration_cast<duration>(one->times.expires_at - now));
    }
    pause(std::max<duration>(wait, std::chrono::milliseconds(1)), renewed);
  }
}

// Without a thread, or if a log throws, they are told after the renewal.
std::jthread lock_service::engine::start_telling(const held_ones& all) const {
  try {
    return std::jthread([this, &all](const std::stop_token& renewed) {
      try {
        tell_in_time(all, renewed);
      } catch (const std::exception&) {
      }
    });
  } catch (const std::system_error&) {
    return {};
  }
}

void lock_service::engine::run_once() {
  const auto all = watched();
  const auto now = store->env().now();
  held_ones due, in_time;
  for (const auto& one : all) {
    const std::scoped_lock lock(one->mutex);
    one->times = locking::seen_at(now, one->times, one->what.ttl);
    if (one->wants_renewal && one->times.renew_at <= now) due.push_back(one);
    if (one->times.expires_at > now) in_time.push_back(one);
  }
  try {
    std::jthread telling;
    if (!due.empty() && !in_time.empty()) telling = start_telling(in_time);
    renew_all(std::move(due));
  } catch (...) {
    note_expired(all, store->env().now());
    throw;
  }
  note_expired(all, now);
}

duration lock_service::engine::until_next() const {
  const auto now = store->env().now();
  auto next = look_max;
  for (const auto& one : watched()) {
    const std::scoped_lock lock(one->mutex);
    const auto times = locking::seen_at(now, one->times, one->what.ttl);
    const auto at = one->wants_renewal ? times.renew_at : times.expires_at;
    next = std::min(next, std::chrono::duration_cast<duration>(at - now));
  }
  return std::max(next, duration::zero());
}

}  // namespace settle::inline v0
