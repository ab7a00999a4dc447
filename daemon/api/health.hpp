// What people and machines ask about the daemon as a whole: /readyz and /metrics. Everybody is asked at once
// and nobody is waited for: whoever does not answer in time is the one that is not ready.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/api/metrics_text.hpp"
#include "daemon/services/served_service.hpp"
#include "settle/http.hpp"

namespace settle::daemon {

// How long /readyz and /metrics wait for answers, of all services together.
constexpr duration answers_within = std::chrono::seconds(2);

struct service_health {
  std::string name;
  std::vector<std::string> reasons = {};  // why it is not ready; none: it is
};

std::vector<service_health> ask_health(std::span<const std::shared_ptr<served_service>> services);

// 200 if all of them are ready, else 503 with the reasons. The one service without a name is the daemon.
http::response readiness_of(std::span<const service_health> services);

// Counters of the services, and gauges of the services and their brokers.
std::vector<metric_source> ask_metrics(std::span<const std::shared_ptr<served_service>> services,
                                       const broker_map& brokers);

}  // namespace settle::daemon
