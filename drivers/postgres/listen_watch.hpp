// Sleeps until somebody has asked, after a commit, to be noticed.
#pragma once

#include <memory>

#include "postgres/hints.hpp"
#include "postgres/session.hpp"
#include "settle/postgres.hpp"
#include "settle/wakeup.hpp"

namespace settle::inline v0::postgres {

// Has a connection of its own that LISTENs, opened by the first wait() and again after it was lost. While
// there is none, commits of this process still wake, and the caller's poll finds the others.
class listen_watch final : public wakeup {
 public:
  listen_watch(const settings& to, const options& with, std::shared_ptr<wake_list> watchers);
  ~listen_watch() override;

  void wait(duration at_most, std::stop_token stop) override;

 private:
  bool try_listen(duration at_most, const std::stop_token& stop);
  void doze_until(steady::time_point then, const std::stop_token& stop);
  bool read_notifications();

  settings to_;
  options with_;
  std::shared_ptr<wake_list> watchers_;
  int event_ = -1;  // written by commits of this process, and to stop
  poller wait_;
  handle conn_;
  steady::time_point next_try_{};
};

}  // namespace settle::inline v0::postgres
