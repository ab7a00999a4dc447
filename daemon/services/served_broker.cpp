#include "daemon/services/served_broker.hpp"

#include "compose/service_broker.hpp"
#include "daemon/data_folder.hpp"
#include "daemon/services/store_check.hpp"

namespace settle::daemon {

served_broker::served_broker(config::broker_settings settings, duration busy_timeout, const environment& env)
    : settings_(std::move(settings)),
      env_(env),
      reasons_([this] { return find_reasons(); }),
      gauges_([this] { return read_gauges(); }) {
  settings_.options.env = env_;
  settings_.options.busy_timeout = busy_timeout;
}

broker& served_broker::get() {
  const std::scoped_lock lock(opening_);
  if (broker_) return *broker_;
  require_local_file(settings_.url);
  auto opened = compose::open_broker(settings_.url, settings_.options);
  file_ = compose::open_broker_file(settings_.url, settings_.options);
  broker_ = std::move(opened);
  return *broker_;
}

bool served_broker::is_open() {
  const std::scoped_lock lock(opening_);
  return broker_ != nullptr;
}

std::vector<std::string> served_broker::find_reasons() {
  if (!is_open()) return {"its broker is being opened"};
  std::vector<std::string> reasons;
  if (auto why = unanswered_by(*file_, compose::broker_migrations(), troubles_); !why.empty())
    reasons.push_back(std::move(why));
  try {
    if (auto why = compose::room_trouble(*file_, settings_.options.bytes_max); !why.empty())
      reasons.push_back(std::move(why));
  } catch (const std::exception&) {  // it does not answer: that was said above
  }
  return reasons;
}

std::optional<gauge_values> served_broker::read_gauges() try {
  if (!is_open()) return std::nullopt;
  gauge_values found;
  read_broker_gauges(*broker_->inspection(), found);
  troubles_.is_over("scrape");
  return found;
} catch (const std::exception& e) {
  if (troubles_.is_news("scrape", env_.now()))
    env_.log->write(log_level::warning, "scrape_failed", {{"store", "broker"}, {"error", e.what()}});
  return std::nullopt;
}

}  // namespace settle::daemon
