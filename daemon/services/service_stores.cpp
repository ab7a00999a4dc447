#include "daemon/services/service_stores.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error_detail.hpp"
#include "daemon/data_folder.hpp"
#include "daemon/services/store_check.hpp"
#include "daemon/startup_error.hpp"
#include "doctor/doctor.hpp"
#include "settle/error.hpp"

namespace settle::daemon {
namespace {

constexpr duration pooler_look_every = std::chrono::seconds(10);
constexpr std::string_view not_ready_advice = "not ready until it answers; it is tried again and again";

}  // namespace

service_stores::service_stores(const config::service_settings& of, const http_limits& limits,
                               const environment& env)
    : settings_(of), limits_(limits), env_(env) {
  if (!compose::is_postgres(of.database)) require_local_file(of.database);
  compose::database_options with;
  with.env = env_;
  with.busy_timeout = of.busy_timeout;
  own_ = compose::open_database(of.database, with);
  view_ = compose::open_database(of.database, view_options());
  try_to_prepare();
  open_keys();
}

compose::database_options service_stores::view_options() const {
  compose::database_options with;
  with.env = env_;
  with.busy_timeout = settings_.busy_timeout;
  with.connect_timeout = std::min(with.connect_timeout, limits_.timeout);
  with.statement_timeout = std::min(with.statement_timeout, limits_.timeout);
  with.connections_max = std::max(with.connections_max, static_cast<int>(limits_.workers));
  return with;
}

// Leases and wake-ups of the relay, and prepared statements, are in a session.
void service_stores::require_own_sessions() const {
  if (!compose::sessions_are_shared(settings_.database, view_options())) return;
  const auto setting =
      settings_.name.empty() ? std::string("--database") : fmt::format("service.{}.database", settings_.name);
  throw error(
      errc::invalid_argument,
      fmt::format("{} names a pooler in transaction mode in front of {}, and settled needs sessions of "
                  "its own: name the server itself, or a pool with pool_mode = session",
                  setting, own_->name()));
}

void service_stores::prepare_schema() {
  require_own_sessions();
  if (settings_.migrate) {
    const int applied = migrate(*own_);
    if (applied > 0)
      env_.log->write(log_level::info, "migrated",
                      {{"database", own_->name()}, {"migrations", std::to_string(applied)}});
    if (const auto lacks = applied > 0 ? doctor::examine_publisher_role(*own_) : std::nullopt)
      env_.log->write(log_level::warning, "publisher_role_missing",
                      {{"database", own_->name()}, {"problem", lacks->title}, {"fix", lacks->fix}});
    return;
  }
  const auto state = sql::read_migration_state(*own_, sql::service_migrations(own_->speaks()));
  if (state.applied < state.known)
    throw error(errc::schema_missing,
                fmt::format("{} is at schema version {}, this build needs {}, and migrate = false: run what "
                            "`settle migrate --print` prints for it",
                            own_->name(), state.applied, state.known));
}

// Every background service asks for this before its first round; one of them does it.
void service_stores::prepare() {
  const std::scoped_lock lock(preparing_);
  if (prepared_) return;
  prepare_schema();
  prepared_ = true;
}

// A file that cannot be had is a mistake of the start, a server that is away is not.
void service_stores::try_to_prepare() try { prepare(); } catch (const error& e) {
  if (own_->speaks() == dialect::sqlite || !e.retryable()) throw;
  env_.log->write(
      log_level::warning, "database_away",
      {{"database", own_->name()}, {"error", e.what()}, {"advice", std::string(not_ready_advice)}});
}

void service_stores::open_keys() {
  if (settings_.keys_redis.empty()) {
    keys_ = open_claims(*view_);
    return;
  }
  redis_ = compose::open_redis(
      settings_.keys_redis,
      {.env = env_, .connect_timeout = limits_.timeout, .command_timeout = limits_.timeout});
  check_redis();
  keys_ = open_claims(*redis_);
}

// One that forgets is a mistake of the start; one that is away is asked when it is back, by every connection.
void service_stores::check_redis() try { redis_->run({"PING"}); } catch (const error& e) {
  if (!e.retryable()) throw startup_error(fmt::format("keys.redis cannot be used: {}", e.what()));
  env_.log->write(
      log_level::warning, "redis_away",
      {{"redis", redis_->name()}, {"error", e.what()}, {"advice", std::string(not_ready_advice)}});
}

// Somebody may put a pooler in between while we run. To look costs a connection, so not every time.
std::string service_stores::pooled() {
  const std::scoped_lock lock(pooler_mutex_);
  const auto now = env_.now();
  if (now >= pooler_seen_ && now < pooler_seen_ + pooler_look_every) return pooler_found_;
  try {
    require_own_sessions();
    pooler_found_.clear();
  } catch (const error& e) {
    if (e.code() != errc::invalid_argument) return {};  // away: others say so
    pooler_found_ = detail_of(e);
  }
  pooler_seen_ = now;
  return pooler_found_;
}

// A write that changes nothing: a replica answers everything else.
std::string service_stores::unanswered_by_redis() try {
  if (redis_) redis_->run({"DEL", "idempotency:readiness"});
  return {};
} catch (const std::exception& e) {
  return e.what();
}

std::vector<std::string> service_stores::reasons_not_ready() {
  std::vector<std::string> reasons;
  const auto add = [&](std::string why) {
    if (!why.empty()) reasons.push_back(std::move(why));
  };
  add(unanswered_by(*view_, sql::service_migrations(view_->speaks()), troubles_));
  add(pooled());
  add(unanswered_by_redis());
  return reasons;
}

}  // namespace settle::daemon
