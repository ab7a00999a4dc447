#include "daemon/services/served_broker.hpp"

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
  if (!compose::is_broker_server(settings_.url)) require_local_file(settings_.url);
  auto opened = compose::open_broker(settings_.url, settings_.options);
  view_ = compose::look_into_broker(settings_.url, settings_.options);
  broker_ = std::move(opened);
  return *broker_;
}

bool served_broker::is_open() {
  const std::scoped_lock lock(opening_);
  return broker_ != nullptr;
}

std::vector<std::string> served_broker::find_reasons() {
  if (!is_open()) return {"its broker is being opened"};
  const auto name = compose::broker_without_secrets(settings_.url);
  try {
    auto why = view_->trouble();
    is_answered(name, troubles_);
    return why.empty() ? std::vector<std::string>() : std::vector{std::move(why)};
  } catch (const std::exception& e) {
    return {unanswered(name, e, env_, troubles_)};
  }
}

std::optional<gauge_values> served_broker::read_gauges() try {
  if (!is_open()) return std::nullopt;
  gauge_values found;
  read_broker_gauges(view_->inspection(), found);
  found["settle_broker_blocked"] = view_->trouble().empty() ? 0 : 1;
  troubles_.is_over("scrape");
  return found;
} catch (const std::exception& e) {
  if (troubles_.is_news("scrape", env_.now()))
    env_.log->write(log_level::warning, "scrape_failed", {{"store", "broker"}, {"error", e.what()}});
  return std::nullopt;
}

}  // namespace settle::daemon
