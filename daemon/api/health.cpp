#include "daemon/api/health.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <set>

namespace settle::daemon {
namespace {

namespace json = boost::json;

constexpr const char* no_answer = "no answer within 2 s";

// The time that is left of `answers_within`.
class patience {
 public:
  explicit patience(const environment& env) : env_(env), until_(env.now() + answers_within) {}
  duration left() const { return std::clamp(until_ - env_.now(), duration::zero(), answers_within); }

 private:
  environment env_;
  timestamp until_;
};

std::set<served_broker*> brokers_of(std::span<const std::shared_ptr<served_service>> services) {
  std::set<served_broker*> all;
  for (const auto& one : services)
    for (const auto& [name, broker] : one->brokers()) all.insert(broker.get());
  return all;
}

json::object shown(const service_health& of) {
  json::object made{{"ready", of.reasons.empty()}};
  if (!of.reasons.empty()) made["reasons"] = json::array(of.reasons.begin(), of.reasons.end());
  return made;
}

std::string label_of(const char* name, const std::string& value) {
  const auto series = series_of("", {{name, value}});
  return value.empty() ? std::string() : series.substr(1, series.size() - 2);
}

void note_up(gauge_values& gauges, std::string_view store, bool answered) {
  gauges[series_of("settle_store_up", {{"store", store}})] = answered ? 1 : 0;
}

}  // namespace

std::vector<service_health> ask_health(std::span<const std::shared_ptr<served_service>> services) {
  const patience within{environment{}};
  const auto brokers = brokers_of(services);
  for (auto* one : brokers) one->reasons_not_ready().begin();
  for (const auto& one : services) one->reasons_not_ready().begin();
  const std::vector<std::string> silent{no_answer};
  std::vector<service_health> all;
  for (const auto& one : services) {
    service_health made{one->name()};
    made.reasons = one->reasons_not_ready().wait(within.left()).value_or(silent);
    for (const auto& [name, broker] : one->brokers()) {
      auto why = broker->reasons_not_ready().wait(within.left());
      for (auto& reason : why.value_or(silent))
        made.reasons.push_back(name.empty() ? std::move(reason) : "broker " + name + ": " + reason);
    }
    all.push_back(std::move(made));
  }
  return all;
}

http::response readiness_of(std::span<const service_health> services) {
  const bool ready = std::ranges::all_of(services, [](const auto& one) { return one.reasons.empty(); });
  json::object body;
  if (services.size() == 1 && services.front().name.empty()) {
    body = shown(services.front());
  } else {
    body["ready"] = ready;
    json::object each;
    for (const auto& one : services) each[one.name] = shown(one);
    body["services"] = std::move(each);
  }
  return http::text(ready ? 200 : 503, "application/json", json::serialize(body) + "\n");
}

std::vector<metric_source> ask_metrics(std::span<const std::shared_ptr<served_service>> services,
                                       const broker_map& brokers) {
  const patience within{environment{}};
  for (const auto& [name, one] : brokers) one->gauges().begin();
  for (const auto& one : services) one->gauges().begin();
  std::vector<metric_source> all;
  for (const auto& one : services) {
    metric_source made{metric_source::origin::service, label_of("service", one->name())};
    made.counters = one->counters().snapshot();
    made.times = one->counters().times_snapshot();
    const auto found = one->gauges().wait(within.left()).value_or(std::nullopt);
    if (found) made.gauges = *found;
    note_up(made.gauges, "service", found.has_value());
    all.push_back(std::move(made));
  }
  for (const auto& [name, one] : brokers) {
    metric_source made{metric_source::origin::broker, label_of("broker", name)};
    const auto found = one->gauges().wait(within.left()).value_or(std::nullopt);
    if (found) made.gauges = *found;
    note_up(made.gauges, "broker", found.has_value());
    all.push_back(std::move(made));
  }
  return all;
}

}  // namespace settle::daemon
