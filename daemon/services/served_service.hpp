// One service of the daemon: its stores, and at work for it a relay, a worker for webhooks and a sweeper,
// each on a thread of its own. Nothing of it waits for another service: one that is away, slow or set up
// wrongly is not ready, and that is all.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_ask.hpp"
#include "broker/routing.hpp"
#include "config/configuration.hpp"
#include "daemon/api/gauges.hpp"
#include "daemon/log.hpp"
#include "daemon/services/running_service.hpp"
#include "daemon/services/served_broker.hpp"
#include "daemon/services/service_stores.hpp"
#include "daemon/services/webhooks.hpp"
#include "settle/http.hpp"
#include "settle/metrics.hpp"

namespace settle::daemon {

// What a service publishes to, by name.
using broker_map = std::map<std::string, std::shared_ptr<served_broker>, std::less<>>;

class served_service : public std::enable_shared_from_this<served_service> {
 public:
  struct surroundings {
    http_limits http;
    broker_map brokers;  // those that it publishes to
    std::shared_ptr<metrics> counters;
    line_log& log;
    std::function<void()> first_round = {};  // called once, when its relay has finished one
  };

  // Opens nothing yet.
  served_service(const config::service_settings& settings, surroundings with);
  // Stops what is at work, without patience.
  ~served_service();

  const std::string& name() const { return settings_.name; }
  const config::service_settings& settings() const { return settings_; }
  const broker_map& brokers() const { return with_.brokers; }
  const metrics& counters() const { return *with_.counters; }

  // Opens its stores and goes to work. Throws if they cannot be had, but not because a server is away.
  void start();
  // The same on a thread of its own, again and again until it succeeds.
  void start_when_possible();

  // Its idempotency keys and its webhooks: below /services/NAME, or at the top if it has no name. The routes
  // keep it alive.
  void add_routes(http::router& to);

  // To all of them first, so that they share the time to finish.
  void ask_to_stop();
  // Lets the work under way finish for `drain`, then cancels it. Once is enough.
  void stop(duration drain);

  bounded_ask<std::vector<std::string>>& reasons_not_ready() { return reasons_; }
  // Nothing: its database does not answer.
  bounded_ask<std::optional<gauge_values>>& gauges() { return gauges_; }

 private:
  void open();
  void make_work();
  publisher& destination();
  void try_to_start(const std::stop_token& stop);
  std::optional<std::string> why_not_open();
  std::vector<std::string> find_reasons();
  std::optional<gauge_values> read_gauges();

  config::service_settings settings_;
  surroundings with_;
  service_log log_;
  environment env_;
  webhooks webhooks_;
  troubles troubles_;
  std::atomic<bool> opened_ = false;  // the stores below are there; set after them, read before them
  std::unique_ptr<service_stores> stores_;
  std::unique_ptr<publisher> routed_;  // none: all goes to one broker
  std::vector<std::unique_ptr<running_service>> work_;
  std::vector<const running_service*> needed_;  // those of them without which it is not ready
  std::mutex mutex_;
  std::string failure_;  // why it could not be opened, the last time
  bool started_ = false;
  bool stopping_ = false;
  std::jthread opening_;
  std::shared_ptr<http::worker_group> workers_;  // of its routes; none without a name: the server's own
  bounded_ask<std::vector<std::string>> reasons_;
  bounded_ask<std::optional<gauge_values>> gauges_;
};

}  // namespace settle::daemon
