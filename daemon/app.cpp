#include "daemon/app.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/error_detail.hpp"
#include "compose/service_broker.hpp"
#include "compose/service_database.hpp"
#include "daemon/api/gauges.hpp"
#include "daemon/api/keys.hpp"
#include "daemon/api/metrics_text.hpp"
#include "daemon/notify.hpp"
#include "daemon/services/plain_reason.hpp"
#include "daemon/startup_error.hpp"
#include "doctor/doctor.hpp"
#include "settle/error.hpp"
#include "settle/relay.hpp"
#include "sql/migrations.hpp"

namespace settle::daemon {
namespace {

constexpr duration pooler_look_every = std::chrono::seconds(10);

environment environment_with(metrics& counters, log_sink& log) {
  environment env;
  env.counters = &counters;
  env.log = &log;
  return env;
}

http::server_options http_options_of(const configuration& config, const address& where,
                                     const environment& env) {
  auto options = config.http;
  options.address = where.host;
  options.port = where.port;
  options.first_byte_time_max = options.idle_time_max = options.header_time_max = config.http_timeout;
  options.transfer_grace = config.http_timeout;
  options.handler_time_max =
      std::max(options.handler_time_max, 4 * config.http_timeout);  // both stores may be slow
  options.answer_headers.set("Cache-Control", "no-store");
  options.env = env;
  return options;
}

std::string service_of(const configuration& config) {
  return config.database.empty() ? config.data + "/settle.db" : config.database;
}

std::string scrape_of(std::string_view store) { return "scrape of " + std::string(store); }

// Why messages are not taken, or not of every topic. Whether the file answers at all is asked elsewhere.
std::string without_room(database& broker, std::int64_t bytes_max) try {
  return compose::room_trouble(broker, bytes_max);
} catch (const std::exception&) {
  return {};
}

std::string milliseconds_of(duration of) { return std::to_string(of / std::chrono::milliseconds(1)); }

}  // namespace

app::app(const configuration& config, log_sink& log)
    : config_(config),
      webhooks_(config.webhooks),
      env_(environment_with(counters_, log)),
      started_(env_.now()),
      lock_(config.data) {
  start_http();
  const auto at = listening_on();
  log.write(log_level::info, "started",
            {{"version", SETTLE_VERSION},
             {"pid", std::to_string(::getpid())},
             {"data", config_.data},
             {"database", compose::without_secrets(service_of(config_))},
             {"listen", to_text(at)}});
  if (!at.is_loopback)
    log.write(
        log_level::warning, "listening_beyond_loopback",
        {{"listen", to_text(at)}, {"advice", "nothing but webhooks is authenticated yet; keep others out"}});
  open_stores();
  start_services();
  lock_.keep();
}

void app::start_http() {
  const auto where = parse_address(config_.listen).value();
  try {
    http_ = std::make_unique<http::server>(routes(), http_options_of(config_, where, env_));
  } catch (const error& e) {
    throw startup_error(fmt::format("{}; name another address with --listen", e.what()));
  }
}

// With the port that was chosen.
address app::listening_on() const {
  auto at = parse_address(config_.listen).value();
  at.port = http_->port();
  return at;
}

http::router app::routes() {
  http::router made;
  made.get("/healthz",
           [](const http::request&) { return http::text(200, "application/json", "{\"alive\":true}\n"); },
           {.quick = true});
  made.get("/readyz", [this](const http::request&) { return readiness(); });
  made.get("/metrics", [this](const http::request&) { return metrics_page(); });
  add_key_routes(made, [this]() -> claims& {
    if (!opened_ || !prepared_) throw error(errc::store_unavailable, "the stores are being opened");
    return *keys_;
  });
  webhooks_.add_routes(made, [this] { return opened_ && prepared_ ? service_view_.get() : nullptr; });
  return made;
}

void app::open_stores() {
  open_service();
  try_to_prepare();
  open_keys();
  open_broker();
  make_services();
  opened_ = true;
}

void app::open_service() {
  compose::database_options with;
  with.env = env_;
  with.busy_timeout = config_.busy_timeout;
  service_ = compose::open_database(service_of(config_), with);
  service_view_ = compose::open_database(service_of(config_), view_options());
}

compose::database_options app::view_options() const {
  compose::database_options with;
  with.env = env_;
  with.busy_timeout = config_.busy_timeout;
  with.connect_timeout = std::min(with.connect_timeout, config_.http_timeout);
  with.statement_timeout = std::min(with.statement_timeout, config_.http_timeout);
  with.connections_max = std::max(with.connections_max, static_cast<int>(config_.http.worker_threads));
  return with;
}

// Leases and wake-ups of the relay, and prepared statements, are in a session.
void app::require_own_sessions() const {
  if (compose::sessions_are_shared(service_of(config_), view_options()))
    throw error(
        errc::invalid_argument,
        fmt::format(
            "--database names a pooler in transaction mode in front of {}, and settled needs sessions of "
            "its own: name the server itself, or a pool with pool_mode = session",
            service_->name()));
}

void app::prepare_schema() {
  require_own_sessions();
  if (config_.migrate) {
    const int applied = migrate(*service_);
    if (applied > 0)
      env_.log->write(log_level::info, "migrated",
                      {{"database", service_->name()}, {"migrations", std::to_string(applied)}});
    if (const auto lacks = applied > 0 ? doctor::examine_publisher_role(*service_) : std::nullopt)
      env_.log->write(log_level::warning, "publisher_role_missing",
                      {{"database", service_->name()}, {"problem", lacks->title}, {"fix", lacks->fix}});
    return;
  }
  const auto state = sql::read_migration_state(*service_, sql::service_migrations(service_->speaks()));
  if (state.applied < state.known)
    throw error(errc::schema_missing,
                fmt::format("{} is at schema version {}, this build needs {}, and migrate = false: run what "
                            "`settle migrate --print` prints for it",
                            service_->name(), state.applied, state.known));
}

// Every service asks for this before its first round; one of them does it.
void app::prepare_once() {
  const std::scoped_lock lock(preparing_);
  if (prepared_) return;
  prepare_schema();
  prepared_ = true;
}

// A file that cannot be had is a mistake of the start, a server that is away is not.
void app::try_to_prepare() try { prepare_once(); } catch (const error& e) {
  if (service_->speaks() == dialect::sqlite || !e.retryable()) throw;
  env_.log->write(log_level::warning, "database_away",
                  {{"database", service_->name()},
                   {"error", e.what()},
                   {"advice", "not ready until it answers; it is tried again and again"}});
}

void app::open_keys() {
  if (config_.keys_redis.empty()) {
    keys_ = open_claims(*service_view_);
    return;
  }
  redis_ = compose::open_redis(
      config_.keys_redis,
      {.env = env_, .connect_timeout = config_.http_timeout, .command_timeout = config_.http_timeout});
  check_redis();
  keys_ = open_claims(*redis_);
}

// One that forgets is a mistake of the start; one that is away is asked when it is back, by every connection.
void app::check_redis() try { redis_->run({"PING"}); } catch (const error& e) {
  if (!e.retryable()) throw startup_error(fmt::format("keys.redis cannot be used: {}", e.what()));
  env_.log->write(log_level::warning, "redis_away",
                  {{"redis", redis_->name()},
                   {"error", e.what()},
                   {"advice", "not ready until it answers; it is tried again and again"}});
}

void app::open_broker() {
  auto with = config_.broker;
  with.env = env_;
  with.busy_timeout = config_.busy_timeout;
  broker_ = compose::open_broker(config_.data + "/broker.db", with);
  broker_file_ = compose::open_broker_file(config_.data + "/broker.db", with);
}

void app::make_services() {
  const auto add = [this](std::unique_ptr<service> what, std::function<void()> first_round = {}) {
    services_.push_back(std::make_unique<running_service>(
        std::move(what), [this] { prepare_once(); }, std::move(first_round)));
    return services_.back().get();
  };
  needed_.push_back(add(std::make_unique<relay>(*service_, broker_->publishing(), config_.relay),
                        [this] { announce_ready(); }));
  if (!webhooks_.empty()) needed_.push_back(add(webhooks_.make_worker(*service_)));
  add(std::make_unique<sweeping>(*service_, config_.sweep));
}

void app::start_services() {
  for (const auto& one : services_) one->start();
}

void app::stop_services(timestamp until) {
  for (const auto& one : services_) one->ask_to_stop();
  for (const auto& one : services_)
    if (!one->stop(std::max(duration(0), until - env_.now())))
      env_.log->write(log_level::warning, "drain_cancelled", {{"service", std::string(one->name())}});
}

void app::announce_ready() {
  env_.log->write(
      log_level::info, "ready",
      {{"listen", to_text(listening_on())}, {"after_ms", milliseconds_of(env_.now() - started_)}});
  notify_supervisor("READY=1");
}

void app::stop(std::string_view why) {
  stopping_ = true;
  notify_supervisor("STOPPING=1");
  env_.log->write(
      log_level::info, "stopping",
      {{"signal", std::string(why)}, {"drain_timeout_ms", milliseconds_of(config_.drain_timeout)}});
  const auto begun = env_.now();
  const auto until = begun + config_.drain_timeout;
  stop_services(until);
  if (!http_->drain(std::max(duration(0), until - env_.now())))
    env_.log->write(log_level::warning, "drain_cancelled", {{"service", "http"}});
  http_.reset();
  env_.log->write(log_level::info, "stopped",
                  {{"after_ms", milliseconds_of(env_.now() - begun)},
                   {"published", std::to_string(counters_.value("settle_relay_published_total", {}))}});
}

// The migration state is what a store can say without touching anybody's data; it also notices a file that
// a newer version has migrated meanwhile.
std::string app::unanswered_by(database& store, bool is_broker) const try {
  const auto state = is_broker ? sql::read_migration_state(store, compose::broker_migrations())
                               : sql::read_migration_state(store, sql::service_migrations(store.speaks()));
  is_over("readiness of " + store.name());
  if (state.applied == state.known) return {};
  return fmt::format("{} is at schema version {}, this build needs {}", store.name(), state.applied,
                     state.known);
} catch (const std::exception& e) {
  return unanswered(store.name(), e);
}

// The statement that failed is for the log.
std::string app::unanswered(const std::string& store, const std::exception& e) const {
  if (is_news("readiness of " + store))
    env_.log->write(log_level::warning, "readiness_failed", {{"store", store}, {"error", e.what()}});
  const auto* ours = dynamic_cast<const error*>(&e);
  return fmt::format("{}: {}", store, ours != nullptr ? plain_reason(*ours) : "the log says why");
}

bool app::is_news(const std::string& trouble) const {
  const std::scoped_lock lock(troubles_mutex_);
  return troubles_[trouble].fails(env_.now());
}

void app::is_over(const std::string& trouble) const {
  const std::scoped_lock lock(troubles_mutex_);
  troubles_.erase(trouble);
}

// Somebody may put a pooler in between while we run. To look costs a connection, so not every time.
std::string app::pooled() const {
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

std::vector<std::string> app::reasons_not_ready() {
  if (!opened_) return {"the stores are being opened"};
  std::vector<std::string> reasons;
  if (stopping_) reasons.emplace_back("the daemon is stopping");
  const auto silence_max = config_.relay.lease_ttl + config_.relay.idle_poll + config_.busy_timeout;
  for (const auto* one : needed_)
    if (auto trouble = one->trouble(silence_max)) reasons.push_back(std::move(*trouble));
  if (auto why = unanswered_by(*service_view_, false); !why.empty()) reasons.push_back(std::move(why));
  if (auto why = pooled(); !why.empty()) reasons.push_back(std::move(why));
  if (auto why = unanswered_by(*broker_file_, true); !why.empty()) reasons.push_back(std::move(why));
  if (auto why = without_room(*broker_file_, config_.broker.bytes_max); !why.empty())
    reasons.push_back(std::move(why));
  if (auto why = unanswered_by_redis(); !why.empty()) reasons.push_back(std::move(why));
  return reasons;
}

// A write that changes nothing: a replica answers everything else.
std::string app::unanswered_by_redis() const try {
  if (redis_) redis_->run({"DEL", "idempotency:readiness"});
  return {};
} catch (const std::exception& e) {
  return e.what();
}

http::response app::readiness() {
  const auto reasons = reasons_not_ready();
  boost::json::object body{{"ready", reasons.empty()}};
  if (!reasons.empty()) body["reasons"] = boost::json::array(reasons.begin(), reasons.end());
  return http::text(reasons.empty() ? 200 : 503, "application/json", boost::json::serialize(body) + "\n");
}

http::response app::metrics_page() {
  gauge_values gauges;
  gauges[series_of("settle_build_info", {{"version", SETTLE_VERSION}})] = 1;
  gauges["settle_start_time_seconds"] = std::chrono::duration<double>(started_.time_since_epoch()).count();
  const auto read = [&](std::string_view store, auto&& from) {
    bool answered = opened_;
    try {
      if (answered) from();
      is_over(scrape_of(store));
    } catch (const std::exception& e) {
      answered = false;
      if (is_news(scrape_of(store)))
        env_.log->write(log_level::warning, "scrape_failed",
                        {{"store", std::string(store)}, {"error", e.what()}});
    }
    gauges[series_of("settle_store_up", {{"store", store}})] = answered ? 1 : 0;
  };
  read("service", [&] { read_service_gauges(*service_view_, gauges); });
  read("broker", [&] { read_broker_gauges(*broker_->inspection(), gauges); });
  return http::text(200, metrics_content_type,
                    metrics_text(counters_.snapshot(), gauges, counters_.times_snapshot()));
}

}  // namespace settle::daemon
