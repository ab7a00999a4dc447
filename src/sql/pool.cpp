#include "sql/pool.hpp"

#include <fmt/format.h>

#include <condition_variable>

#include "settle/driver/database.hpp"
#include "settle/error.hpp"

namespace settle::sql {

struct pool::waiter {
  std::condition_variable_any changed;
  std::unique_ptr<connection> given;
  bool served = false;
};

pool::pool(limits within, opener open) : limits_(std::move(within)), open_(std::move(open)) {
  if (limits_.connections_max < 1)
    throw error(errc::invalid_argument,
                fmt::format("connections_max is {}, it must be at least 1", limits_.connections_max));
  // Reserved now, so that giving a connection back cannot fail.
  idle_.reserve(static_cast<std::size_t>(limits_.connections_max));
}

pool::~pool() = default;

std::unique_ptr<connection> pool::acquire(const std::stop_token& cancel) {
  auto taken = take(cancel);
  if (taken && taken->reusable()) return taken;
  taken.reset();
  try {
    return open_(cancel);
  } catch (...) {
    give_back(nullptr);
    throw;
  }
}

void pool::release(std::unique_ptr<connection> used) noexcept {
  if (used && !used->reusable()) used.reset();
  give_back(std::move(used));
}

std::unique_ptr<connection> pool::take(const std::stop_token& cancel) {
  std::unique_lock lock(mutex_);
  if (!waiting_.empty() || in_use_ >= limits_.connections_max) return wait(lock, cancel);
  ++in_use_;
  if (idle_.empty()) return nullptr;
  auto taken = std::move(idle_.back());
  idle_.pop_back();
  return taken;
}

std::unique_ptr<connection> pool::wait(std::unique_lock<std::mutex>& lock, const std::stop_token& cancel) {
  const auto deadline = std::chrono::steady_clock::now() + limits_.acquire_timeout;
  waiter me;
  waiting_.push_back(&me);
  if (me.changed.wait_until(lock, cancel, deadline, [&] { return me.served; })) return std::move(me.given);
  std::erase(waiting_, &me);
  if (cancel.stop_requested()) throw error(errc::cancelled, "stopped while waiting for a connection");
  throw error(
      errc::store_busy,
      fmt::format("no free connection to {} within {} ms: all {} are in use; end transactions sooner, "
                  "begin none while holding another, or raise connections_max",
                  limits_.of,
                  std::chrono::duration_cast<std::chrono::milliseconds>(limits_.acquire_timeout).count(),
                  limits_.connections_max));
}

void pool::give_back(std::unique_ptr<connection> usable) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!waiting_.empty()) {
    auto& first = *waiting_.front();
    waiting_.pop_front();
    first.given = std::move(usable);
    first.served = true;
    first.changed.notify_one();
    return;
  }
  --in_use_;
  if (usable) idle_.push_back(std::move(usable));
}

}  // namespace settle::sql
