#include "daemon/services/served_service.hpp"

#include <fmt/format.h>

#include "base/pause.hpp"
#include "daemon/api/keys.hpp"
#include "daemon/services/plain_reason.hpp"
#include "daemon/services/sweeping.hpp"
#include "daemon/startup_error.hpp"
#include "settle/error.hpp"
#include "settle/relay.hpp"

namespace settle::daemon {
namespace {

constexpr duration open_again_after = std::chrono::seconds(1);

environment environment_with(metrics& counters, log_sink& log) {
  environment env;
  env.counters = &counters;
  env.log = &log;
  return env;
}

// What whoever asks may be told: a path or a setting, but no statement.
std::string reason_of(const std::exception& e) {
  if (const auto* ours = dynamic_cast<const error*>(&e)) return plain_reason(*ours);
  return dynamic_cast<const startup_error*>(&e) != nullptr ? e.what() : "the log says why";
}

}  // namespace

served_service::served_service(const config::service_settings& settings, surroundings with)
    : settings_(settings),
      with_(std::move(with)),
      log_(with_.log, settings_.name),
      env_(environment_with(*with_.counters, log_)),
      webhooks_(settings_.webhooks),
      reasons_([this] { return find_reasons(); }),
      gauges_([this] { return read_gauges(); }) {
  if (!name().empty())
    workers_ =
        std::make_shared<http::worker_group>(http::worker_group_options{.threads = with_.http.workers});
}

served_service::~served_service() { stop(duration::zero()); }

void served_service::start() {
  open();
  const std::scoped_lock lock(mutex_);
  if (stopping_) return;
  for (const auto& one : work_) one->start();
  started_ = true;
}

void served_service::start_when_possible() {
  opening_ = std::jthread([this](const std::stop_token& stop) { try_to_start(stop); });
}

void served_service::try_to_start(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      return start();
    } catch (const std::exception& e) {
      if (troubles_.is_news("opening", env_.now()))
        env_.log->write(log_level::error, "service_not_opened",
                        {{"database", compose::without_secrets(settings_.database)},
                         {"error", e.what()},
                         {"advice", "the others go on; it is tried again and again"}});
      const std::scoped_lock lock(mutex_);
      failure_ = reason_of(e);
    }
    pause(open_again_after, stop);
  }
}

void served_service::open() {
  if (!stores_) stores_ = std::make_unique<service_stores>(settings_, with_.http, env_);
  for (const auto& [name, one] : with_.brokers) one->get();
  make_work();
  opened_ = true;
}

publisher& served_service::destination() {
  auto& usual = with_.brokers.find(settings_.broker)->second->get().publishing();
  if (settings_.routes.empty()) return usual;
  std::vector<routed_publisher::destination> routes;
  for (const auto& one : settings_.routes) {
    const auto& name = one.broker.empty() ? settings_.broker : one.broker;
    routes.push_back({one, &with_.brokers.find(name)->second->get().publishing()});
  }
  routed_ = std::make_unique<routed_publisher>(usual, std::move(routes));
  return *routed_;
}

void served_service::make_work() {
  work_.clear();
  needed_.clear();
  auto& db = stores_->own();
  const auto add = [this](std::unique_ptr<service> what, std::function<void()> first_round = {}) {
    work_.push_back(std::make_unique<running_service>(
        std::move(what), [this] { stores_->prepare(); }, std::move(first_round)));
    return work_.back().get();
  };
  needed_.push_back(add(std::make_unique<relay>(db, destination(), settings_.relay), with_.first_round));
  if (!webhooks_.empty()) needed_.push_back(add(webhooks_.make_worker(db)));
  add(std::make_unique<sweeping>(db, settings_.sweep));
}

void served_service::add_routes(http::router& to) {
  const auto self = shared_from_this();
  const auto is_usable = [self] { return self->opened_ && self->stores_->is_prepared(); };
  const auto keys = [self, is_usable]() -> claims& {
    if (!is_usable()) throw error(errc::store_unavailable, "the stores are being opened");
    return self->stores_->keys();
  };
  const route_place at{name().empty() ? std::string() : "/services/" + name(), workers_};
  add_key_routes(to, keys, at);
  webhooks_.add_routes(to, at, [self, is_usable] { return is_usable() ? &self->stores_->view() : nullptr; });
}

void served_service::ask_to_stop() {
  opening_.request_stop();
  const std::scoped_lock lock(mutex_);
  stopping_ = true;
  if (started_)
    for (const auto& one : work_) one->ask_to_stop();
}

void served_service::stop(duration drain) {
  const auto until = env_.now() + drain;
  ask_to_stop();
  if (opening_.joinable()) opening_.join();
  if (!std::exchange(started_, false)) return;
  for (const auto& one : work_)
    if (!one->stop(std::max(duration::zero(), until - env_.now())))
      env_.log->write(log_level::warning, "drain_cancelled", {{"work", std::string(one->name())}});
}

std::optional<std::string> served_service::why_not_open() {
  if (opened_) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  return failure_.empty() ? "the stores are being opened" : "it cannot be opened: " + failure_;
}

std::vector<std::string> served_service::find_reasons() {
  if (auto why = why_not_open()) return {std::move(*why)};
  std::vector<std::string> reasons;
  const auto silence_max = settings_.relay.lease_ttl + settings_.relay.idle_poll + settings_.busy_timeout;
  for (const auto* one : needed_)
    if (auto trouble = one->trouble(silence_max)) reasons.push_back(std::move(*trouble));
  for (auto& why : stores_->reasons_not_ready()) reasons.push_back(std::move(why));
  return reasons;
}

std::optional<gauge_values> served_service::read_gauges() try {
  if (!opened_) return std::nullopt;
  gauge_values found;
  read_service_gauges(stores_->view(), found);
  troubles_.is_over("scrape");
  return found;
} catch (const std::exception& e) {
  if (troubles_.is_news("scrape", env_.now()))
    env_.log->write(log_level::warning, "scrape_failed", {{"store", "service"}, {"error", e.what()}});
  return std::nullopt;
}

}  // namespace settle::daemon
