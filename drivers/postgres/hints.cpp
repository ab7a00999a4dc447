#include "postgres/hints.hpp"

#include <unistd.h>

#include <utility>

#include "base/if_possible.hpp"
#include "postgres/exchange.hpp"
#include "postgres/session.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::postgres {
namespace {

using namespace std::chrono_literals;

constexpr duration send_limit = 1s;  // for a hint, a new connection included
// After a while of silence a hint goes at once. Under load relays look every few milliseconds anyway, and
// each hint is a transaction of its own.
constexpr duration between_hints = 5ms;
constexpr duration after_failure = 1s;

}  // namespace

void wake_list::add(int event) {
  const std::scoped_lock lock(mutex_);
  events_.push_back(event);
}

void wake_list::remove(int event) {
  const std::scoped_lock lock(mutex_);
  std::erase(events_, event);
}

void wake_list::wake() noexcept {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t one = 1;
  for (const int event : events_) [[maybe_unused]]
    const auto ignored = ::write(event, &one, sizeof one);
}

hint_sender::hint_sender(const settings& to, const environment& env, wake_list& watchers)
    : to_(to), env_(env), watchers_(watchers) {}

hint_sender::~hint_sender() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void hint_sender::give() noexcept {
  try {
    const std::scoped_lock lock(mutex_);
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    if (std::exchange(wanted_, true) || busy_) return;  // the thread does not sleep
  } catch (...) {                                       // no thread: waiters poll
  }
  changed_.notify_one();
}

bool hint_sender::send() {
  const limit within{steady::now() + send_limit, {}};
  try {
    if (!conn_) {
      conn_ = connect(to_, within, wait_, env_);
      watchers_.own_backend = PQbackendPID(conn_.get());
    }
    pipeline line(conn_.get(), wait_);
    const value channel(wake_channel);
    line.run("select pg_notify($1, '')", {&channel, 1});
    check_statements(round_trip(conn_.get(), line, within), line, to_.name);
    return true;
  } catch (const std::exception& e) {
    close_now(conn_);
    if_possible([&] { env_.log->write(log_level::debug, "postgres_hint_failed", {{"error", e.what()}}); });
    return false;
  }
}

void hint_sender::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return wanted_; }) || wanted_) {
    wanted_ = false;
    busy_ = true;
    lock.unlock();
    const bool sent = send();
    lock.lock();
    if (stop.stop_requested() && !wanted_) return;
    changed_.wait_for(lock, stop, sent ? between_hints : after_failure, [] { return false; });
    if (!sent && stop.stop_requested()) return;
    busy_ = false;
  }
}

}  // namespace settle::inline v0::postgres
