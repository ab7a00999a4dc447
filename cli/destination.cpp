#include "cli/destination.hpp"

#include "cli/files.hpp"

namespace settle::cli {

destination::destination(const context& shared, const environment& env) {
  const auto database = shared.service_path();
  const auto* service = shared.chosen_service();
  if (service == nullptr) {
    usual_ = &open(shared.broker_path(), {.env = env}, database);
    return;
  }
  const auto open_named = [&](const std::string& name) -> broker& {
    const auto& settings = *shared.file()->find_broker(name);
    auto with = settings.options;
    with.env = env;
    return open(settings.url, with, database);
  };
  usual_ = &open_named(service->broker);
  std::vector<routed_publisher::destination> routes;
  for (const auto& one : service->routes)
    routes.push_back({one, &open_named(one.broker.empty() ? service->broker : one.broker).publishing()});
  if (!routes.empty()) routed_ = std::make_unique<routed_publisher>(usual_->publishing(), std::move(routes));
}

broker& destination::open(const std::string& url, compose::broker_options with, const std::string& database) {
  auto& one = opened_[url];
  if (one) return *one;
  require_distinct(database, url);
  if (!compose::is_broker_server(url)) require_ready(url, file_kind::broker);
  one = compose::open_broker(url, with);
  return *one;
}

}  // namespace settle::cli
