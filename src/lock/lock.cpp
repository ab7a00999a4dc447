#include "settle/lock.hpp"

#include <fmt/format.h>

#include "base/if_possible.hpp"
#include "base/text.hpp"
#include "base/time_text.hpp"
#include "base/zoo.hpp"
#include "lock/engine.hpp"
#include "queries/lock.hpp"
#include "settle/error.hpp"
#include "settle/event.hpp"

namespace settle::inline v0 {
namespace {

using namespace std::chrono_literals;

constexpr duration ttl_min = 1ms;
constexpr duration ttl_max = 24h;  // sqlite/lock.sql knows it

std::string checked(std::string_view name, const lock_options& with) {
  check_name(name, {"lock name", event_limits::name_bytes_max});
  if (with.ttl < ttl_min || with.ttl > ttl_max)
    throw error(errc::invalid_argument,
                fmt::format("a lock's ttl is 1 ms to 24 h, not {} µs", with.ttl.count()));
  return std::string(name);
}

}  // namespace

std::string lock_holder::text() const {
  return fmt::format("held by {}, until {}", token.owner.text(), to_rfc3339(until));
}

void detail::refuse_untaken(const lock_holder& by) {
  throw error(errc::ownership_lost,
              fmt::format("a lock was used that is {}: ask `if (attempt)` before it is used", by.text()));
}

void detail::refuse_own_holder() {
  throw error(errc::unexpected_result,
              "a lock that was taken has no other holder: ask `if (!attempt)` first");
}

std::string_view to_string(lock_loss why) { return why == lock_loss::taken ? "taken" : "expired"; }

held_lock::held_lock(std::shared_ptr<state> of) : state_(std::move(of)) {}

held_lock& held_lock::operator=(held_lock&& other) noexcept {
  held_lock old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

held_lock::~held_lock() {
  if (!state_) return;
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->now == state::phase::released) return;
  }
  try {
    state_->release();
  } catch (const std::exception& e) {
    if_possible([&] {
      state_->home->store->env().log->write(log_level::warning, "lock_not_released",
                                            {{"lock", state_->what.name}, {"error", e.what()}});
    });
  }
}

const std::string& held_lock::name() const { return state_->what.name; }
fence_token held_lock::token() const { return state_->what.token; }
bool held_lock::renew() { return state_->renew(); }
release_outcome held_lock::release() { return state_->release(); }

timestamp held_lock::until() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->times.expires_at;
}

bool held_lock::lost() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->now == state::phase::lost;
}

lock_service::lock_service(std::shared_ptr<engine> with) : engine_(std::move(with)) {}
lock_service::~lock_service() = default;

bool lock_service::run_once(std::stop_token) {
  engine_->run_once();
  return false;
}

const environment& lock_service::env() const { return engine_->store->env(); }
wakeup& lock_service::arrivals() { return engine_->arrivals; }
duration lock_service::idle_wait() const { return engine_->until_next(); }

lock_service::state_or_holder lock_service::take(std::string_view name, const lock_options& with) {
  return engine_->take(checked(name, with), with);
}

lock_service::state_or_holder lock_service::wait_for(std::string_view name, duration at_most,
                                                     const lock_options& with, const std::stop_token& stop) {
  return engine_->wait_for(checked(name, with), at_most, with, stop);
}

locks::locks(database& db, const lock_service_options& options)
    : lock_service(std::make_shared<engine>(locking::make_sql_store(db, options), options)) {}

advisory_locks::advisory_locks(redis::client& in, const lock_service_options& options)
    : lock_service(std::make_shared<engine>(locking::make_redis_store(in, options), options)) {}

void fenced(transaction& tx, const lock& by) {
  if (zoo::has(zoo::bug::fence_by_clock) && tx.env().now() < by.until()) return;
  const auto [owner, epoch] = by.token();
  if (tx.execute(queries::lock::check_fence, {by.name(), owner, epoch}).empty())
    throw error(errc::ownership_lost, "the lock " + by.name() + " has another owner now, or was released");
}

void fenced(transaction& tx, std::string_view resource, const fence_token& token) {
  check_name(resource, {"resource", event_limits::name_bytes_max});
  if (tx.execute(queries::lock::raise_fence, {resource, token.owner, token.epoch}).affected() == 0)
    throw error(errc::ownership_lost,
                fmt::format("{} has seen a newer owner than epoch {}", resource, token.epoch));
}

}  // namespace settle::inline v0
