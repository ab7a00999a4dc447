#include "daemon/app.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "compose/service_database.hpp"
#include "config/compare.hpp"
#include "daemon/api/health.hpp"
#include "daemon/notify.hpp"
#include "daemon/startup_error.hpp"
#include "settle/error.hpp"

namespace settle::daemon {
namespace {

environment environment_with(metrics& counters, log_sink& log) {
  environment env;
  env.counters = &counters;
  env.log = &log;
  return env;
}

http::server_options http_options_of(const config::configuration& settings, const config::address& where,
                                     const environment& env) {
  auto options = settings.http;
  options.address = where.host;
  options.port = where.port;
  options.first_byte_time_max = options.idle_time_max = options.header_time_max = settings.http_timeout;
  options.transfer_grace = settings.http_timeout;
  options.handler_time_max =
      std::max(options.handler_time_max, 4 * settings.http_timeout);  // both stores may be slow
  options.answer_headers.set("Cache-Control", "no-store");
  options.env = env;
  return options;
}

std::string milliseconds_of(duration of) { return std::to_string(of / std::chrono::milliseconds(1)); }

// What a service publishes to, by its settings.
broker_map brokers_for(const config::service_settings& of, const broker_map& all) {
  broker_map its;
  its.insert(*all.find(of.broker));
  for (const auto& one : of.routes)
    if (!one.broker.empty()) its.insert(*all.find(one.broker));
  return its;
}

}  // namespace

app::app(const config::configuration& settings, line_log& log)
    : settings_(settings),
      log_(log),
      env_(environment_with(counters_, log)),
      started_(env_.now()),
      lock_(settings.data) {
  cast_ = make_cast(settings_);
  start_http(cast_.all);
  say_started();
  for (const auto& one : cast_.all)
    if (settings_.is_short())
      one->start();
    else
      one->start_when_possible();
  if (!settings_.is_short()) notify_supervisor("READY=1");
  lock_.keep();
}

app::cast app::make_cast(const config::configuration& from) {
  cast made;
  for (const auto& one : from.brokers) {
    const auto known = cast_.brokers.find(one.name);
    const bool same = known != cast_.brokers.end() && config::same_settings(known->second->settings(), one);
    made.brokers[one.name] =
        same ? known->second : std::make_shared<served_broker>(one, from.service.busy_timeout, env_);
  }
  for (const auto& one : from.services) {
    const auto its = brokers_for(one, made.brokers);
    auto kept = kept_service(one, its);
    made.all.push_back(kept ? std::move(kept) : make_service(one, its));
  }
  return made;
}

// The one that runs, if it would be made in the same way again.
std::shared_ptr<served_service> app::kept_service(const config::service_settings& of,
                                                  const broker_map& brokers) {
  for (const auto& one : cast_.all)
    if (one->name() == of.name && config::same_settings(one->settings(), of) && one->brokers() == brokers)
      return one;
  return nullptr;
}

std::shared_ptr<served_service> app::make_service(const config::service_settings& of,
                                                  const broker_map& brokers) {
  auto& counters = service_counters_[of.name];
  if (!counters) counters = std::make_shared<metrics>();
  return std::make_shared<served_service>(
      of, served_service::surroundings{.http = {settings_.http_timeout, settings_.http.worker_threads},
                                       .brokers = brokers,
                                       .counters = counters,
                                       .log = log_,
                                       .first_round = [this, name = of.name] { announce_ready(name); }});
}

app::cast app::current() {
  const std::scoped_lock lock(cast_mutex_);
  return cast_;
}

void app::start_http(const services& all) {
  const auto where = config::parse_address(settings_.listen).value();
  try {
    http_ = std::make_unique<http::server>(routes_of(all), http_options_of(settings_, where, env_));
  } catch (const error& e) {
    throw startup_error(fmt::format("{}; name another address with --listen", e.what()));
  }
  listening_on_ = where;
  listening_on_.port = http_->port();
}

void app::say_started() {
  const auto& at = listening_on_;
  const auto what = settings_.is_short() ? compose::without_secrets(settings_.services.front().database)
                                         : fmt::format("of {} services", settings_.services.size());
  env_.log->write(log_level::info, "started",
                  {{"version", SETTLE_VERSION},
                   {"pid", std::to_string(::getpid())},
                   {"data", settings_.data},
                   {"database", what},
                   {"listen", config::to_text(at)}});
  if (!at.is_loopback)
    env_.log->write(log_level::warning, "listening_beyond_loopback",
                    {{"listen", config::to_text(at)},
                     {"advice", "nothing but webhooks is authenticated yet; keep others out"}});
}

http::router app::routes_of(const services& all) {
  http::router made;
  made.get("/healthz",
           [](const http::request&) { return http::text(200, "application/json", "{\"alive\":true}\n"); },
           {.quick = true});
  made.get("/readyz", [this](const http::request& asked) { return readiness(asked); });
  made.get("/metrics", [this](const http::request&) { return metrics_page(); });
  for (const auto& one : all) one->add_routes(made);
  return made;
}

void app::announce_ready(const std::string& service) {
  service_log log(log_, service);
  log.write(
      log_level::info, "ready",
      {{"listen", config::to_text(listening_on_)}, {"after_ms", milliseconds_of(env_.now() - started_)}});
  if (service.empty()) notify_supervisor("READY=1");
}

void app::reload(const config::configuration& next) {
  const auto begun = env_.now();
  for (const auto& name : config::fixed_differences(settings_, next))
    env_.log->write(log_level::warning, "reload_needs_restart",
                    {{"setting", name}, {"advice", "it stays as it is until settled is started again"}});
  auto settings = config::with_fixed_of(settings_, next);
  auto made = make_cast(settings);
  http_->replace(routes_of(made.all));
  settings_ = std::move(settings);
  services added;
  services leaving;
  const auto missing_in = [](const services& all) {
    return [&all](const auto& one) { return std::ranges::find(all, one) == all.end(); };
  };
  std::ranges::copy_if(made.all, std::back_inserter(added), missing_in(cast_.all));
  std::ranges::copy_if(cast_.all, std::back_inserter(leaving), missing_in(made.all));
  {
    const std::scoped_lock lock(cast_mutex_);
    cast_ = made;
  }
  log_.set_least(settings_.log);
  for (const auto& one : added) one->start_when_possible();
  env_.log->write(log_level::info, "reloaded",
                  {{"services", std::to_string(made.all.size())},
                   {"kept", std::to_string(made.all.size() - added.size())},
                   {"started", std::to_string(added.size())},
                   {"ended", std::to_string(leaving.size())},
                   {"after_ms", milliseconds_of(env_.now() - begun)}});
  if (!leaving.empty()) let_go(std::move(leaving));
}

// On a thread of its own: whoever waits for a database that hangs holds up nobody. Two of one database at
// once are as safe as two daemons.
void app::let_go(services leaving) {
  for (const auto& one : leaving) one->ask_to_stop();
  leaving_.emplace_back([this, leaving = std::move(leaving), drain = settings_.drain_timeout]() mutable {
    const auto until = env_.now() + drain;
    for (auto& one : leaving) {
      one->stop(std::max(duration::zero(), until - env_.now()));
      service_log log(log_, one->name());
      log.write(log_level::info, "service_ended", {});
      one.reset();
    }
  });
}

void app::stop(std::string_view why) {
  stopping_ = true;
  notify_supervisor("STOPPING=1");
  env_.log->write(
      log_level::info, "stopping",
      {{"signal", std::string(why)}, {"drain_timeout_ms", milliseconds_of(settings_.drain_timeout)}});
  const auto begun = env_.now();
  const auto until = begun + settings_.drain_timeout;
  const auto left = [&] { return std::max(duration::zero(), until - env_.now()); };
  for (const auto& one : cast_.all) one->ask_to_stop();
  for (const auto& one : cast_.all) one->stop(left());
  leaving_.clear();
  if (!http_->drain(left())) env_.log->write(log_level::warning, "drain_cancelled", {{"work", "http"}});
  http_.reset();
  std::int64_t published = 0;
  for (const auto& [name, counters] : service_counters_)
    published += counters->value("settle_relay_published_total", {});
  env_.log->write(
      log_level::info, "stopped",
      {{"after_ms", milliseconds_of(env_.now() - begun)}, {"published", std::to_string(published)}});
}

http::response app::readiness(const http::request& asked) {
  auto services = current().all;
  if (const auto name = asked.query_parameter("service")) {
    std::erase_if(services, [&](const auto& one) { return one->name() != *name || name->empty(); });
    if (services.empty())
      return http::problem(404, "service_unknown",
                           "the configuration has no table [service.NAME] of this name", asked.path);
  }
  auto found = ask_health(services);
  if (stopping_)
    for (auto& one : found) one.reasons.insert(one.reasons.begin(), "the daemon is stopping");
  return readiness_of(found);
}

http::response app::metrics_page() {
  metric_source own{metric_source::origin::process};
  own.counters = counters_.snapshot();
  own.times = counters_.times_snapshot();
  own.gauges[series_of("settle_build_info", {{"version", SETTLE_VERSION}})] = 1;
  own.gauges["settle_start_time_seconds"] =
      std::chrono::duration<double>(started_.time_since_epoch()).count();
  const auto now = current();
  auto sources = ask_metrics(now.all, now.brokers);
  sources.push_back(std::move(own));
  return http::text(200, metrics_content_type, metrics_text(sources));
}

}  // namespace settle::daemon
