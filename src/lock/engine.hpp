// The engine of lock services: what is held, what is due, who waits. The store is behind an interface.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "lock/bell.hpp"
#include "lock/schedule.hpp"
#include "lock/store.hpp"
#include "lock/waiting_line.hpp"
#include "settle/lock.hpp"

namespace settle::inline v0 {

struct held_lock::state {
  enum class phase { held, releasing, lost, released };

  // Throws what the store throws; then nothing has changed.
  bool renew();
  release_outcome release();
  // Marks it and tells its owner, if it is in that phase: so once, and not while it is being released.
  void note_loss(lock_loss why, phase from = phase::held);

  std::shared_ptr<lock_service::engine> home;
  locking::holding what;
  bool wants_renewal = false;
  std::function<void(const std::string&, lock_loss)> on_lost;

  // Guards what follows.
  mutable std::mutex mutex;
  phase now = phase::held;
  locking::lease_times times;
};

struct lock_service::engine : std::enable_shared_from_this<lock_service::engine> {
  using state = held_lock::state;

  engine(std::unique_ptr<locking::store> in, const lock_service_options& with)
      : store(std::move(in)), options(with) {}

  state_or_holder take(const std::string& name, const lock_options& with);
  state_or_holder wait_for(const std::string& name, duration at_most, const lock_options& with,
                           const std::stop_token& stop);

  void run_once();
  duration until_next() const;

  std::unique_ptr<locking::store> store;
  lock_service_options options;
  locking::waiting_line line;
  locking::bell arrivals;  // rings when a lock is added that the loop has to look after

 private:
  using held_ones = std::vector<std::shared_ptr<state>>;

  held_ones watched() const;
  void watch(const std::shared_ptr<state>& one);
  void renew_all(held_ones due);
  static void note_expired(const held_ones& all, timestamp at);
  void tell_in_time(const held_ones& all, const std::stop_token& renewed) const;
  std::jthread start_telling(const held_ones& all) const;

  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<state>> watched_;
};

}  // namespace settle::inline v0
