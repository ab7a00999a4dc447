// A broker of the daemon. Several services may publish to it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/bounded_ask.hpp"
#include "compose/service_broker.hpp"
#include "config/configuration.hpp"
#include "daemon/api/gauges.hpp"
#include "daemon/services/troubles.hpp"
#include "settle/broker.hpp"

namespace settle::daemon {

class served_broker {
 public:
  // Opens nothing yet. What `env` points to outlives it.
  served_broker(config::broker_settings settings, duration busy_timeout, const environment& env);

  const config::broker_settings& settings() const { return settings_; }

  // Opens it, if nobody has. Throws while it cannot be had.
  broker& get();

  // Why it takes no messages, or not of every topic. Nothing if it does.
  bounded_ask<std::vector<std::string>>& reasons_not_ready() { return reasons_; }
  // Nothing: it does not answer.
  bounded_ask<std::optional<gauge_values>>& gauges() { return gauges_; }

 private:
  std::vector<std::string> find_reasons();
  std::optional<gauge_values> read_gauges();
  bool is_open();

  config::broker_settings settings_;
  environment env_;
  troubles troubles_;
  std::mutex opening_;
  std::unique_ptr<broker> broker_;
  std::unique_ptr<compose::broker_view> view_;
  bounded_ask<std::vector<std::string>> reasons_;
  bounded_ask<std::optional<gauge_values>> gauges_;
};

}  // namespace settle::daemon
