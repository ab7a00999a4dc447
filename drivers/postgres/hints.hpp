// Wake-ups after commits: within this process through a list of event descriptors, to others through NOTIFY.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "postgres/pipeline.hpp"
#include "postgres/settings.hpp"
#include "settle/environment.hpp"

namespace settle::inline v0::postgres {

// Those of this process who wait. Outlives the database if a watch does.
class wake_list {
 public:
  void add(int event);
  void remove(int event);
  void wake() noexcept;

  // The server's process behind our own notifications: who was woken directly can ignore them.
  std::atomic<int> own_backend = 0;

 private:
  std::mutex mutex_;
  std::vector<int> events_;
};

// Sends NOTIFY from a connection and a thread of its own, both made when first needed. Never part of a
// transaction of anybody's, because a pending NOTIFY makes commits queue; never more than one under way, so
// however many commits ask meanwhile, one more follows. A hint that cannot be sent is dropped.
class hint_sender {
 public:
  // All must outlive it.
  hint_sender(const settings& to, const environment& env, wake_list& watchers);
  ~hint_sender();  // sends what was asked for last

  void give() noexcept;

 private:
  void run(const std::stop_token& stop);
  bool send();

  const settings& to_;
  const environment& env_;
  wake_list& watchers_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool wanted_ = false;
  bool busy_ = false;  // sends, or pauses after it
  poller wait_;
  handle conn_;
  std::jthread thread_;
};

inline constexpr char wake_channel[] = "settle_wake";

}  // namespace settle::inline v0::postgres
