// Background work: something with run_once(), and a small loop around it on a thread of its own.
//
//   settle::background loop(relay);      // starts
//   …
//   loop.stop(10s);                      // finish what is under way; after 10 s, cancel it
//
// All logic is in run_once(), which returns whether it did anything; tests call run_once() themselves.
// The loop only repeats it, sleeps when there is nothing to do, and backs off when it fails.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "settle/environment.hpp"
#include "settle/wakeup.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

class service {
 public:
  virtual ~service() = default;

  virtual std::string_view name() const = 0;
  virtual const environment& env() const = 0;

  // Does one bounded piece of work. True: there may be more at once. False: nothing to do now.
  // `cancel` asks to give up what is under way, safely: roll back, throw errc::cancelled.
  virtual bool run_once(std::stop_token cancel) = 0;

  // What to sleep on when run_once() returned false, and for how long at most.
  virtual wakeup& arrivals() = 0;
  virtual duration idle_wait() const = 0;

  // Called once after the last run_once() of a clean stop: give back leases and partitions.
  virtual void leave() noexcept {}

  // Called instead of it if the last run_once() was cancelled: somebody wants to be gone. What must not look
  // like a crash may be noted, briefly.
  virtual void abandon() noexcept {}
};

// The loop itself, on the caller's thread: for programs that have nothing else to do.
// Returns when `stop` is requested and the piece of work under way has ended.
void run(service& what, std::stop_token stop, std::stop_token cancel = {});

// The loop on a thread of its own. The destructor stops it with the default drain time.
class background {
 public:
  explicit background(service& what);
  ~background();
  background(const background&) = delete;
  background& operator=(const background&) = delete;

  // Asks it to stop and does not wait: for programs that stop several at once. stop() waits.
  void ask_to_stop() noexcept;

  // Stops: the piece of work under way may finish for `drain`; then it is cancelled.
  // True if it finished by itself.
  bool stop(duration drain = std::chrono::seconds(10));

 private:
  std::stop_source stop_;
  std::stop_source cancel_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::jthread thread_;
};

}  // namespace settle

#pragma GCC visibility pop
