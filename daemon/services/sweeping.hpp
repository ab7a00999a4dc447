// Removes what the service's database has kept for long enough, where nobody's work does it on the way: the
// records of idempotent requests whose time is over, and webhooks of the journal that have been over for a
// while.
//
// A sweep goes in slices, each in a short transaction of its own, with a pause between two. So a backlog of
// millions is gone after a while, and nobody who writes meanwhile notices more than one slice. Others may
// remove from the same database at once: each takes what nobody else has locked.
#pragma once

#include "base/timer.hpp"
#include "config/configuration.hpp"
#include "settle/database.hpp"
#include "settle/service.hpp"

namespace settle::daemon {

class sweeping final : public service {
 public:
  sweeping(database& db, const config::sweep_settings& options) : db_(db), options_(options) {}

  // One slice. Always false: it is the pause that comes next, short in the middle of a sweep.
  bool run_once(std::stop_token cancel) override;

  std::string_view name() const override { return "sweeper"; }
  const environment& env() const override { return db_.env(); }
  wakeup& arrivals() override { return timer_; }
  duration idle_wait() const override { return in_sweep_ ? options_.slice_pause : options_.interval; }

 private:
  struct removed {
    std::int64_t requests = 0;
    std::int64_t webhooks = 0;
  };
  void note(const removed& slice);

  database& db_;
  config::sweep_settings options_;
  timer timer_;
  bool in_sweep_ = false;
  removed so_far_;  // in this sweep
};

}  // namespace settle::daemon
