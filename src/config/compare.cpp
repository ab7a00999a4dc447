#include "config/compare.hpp"

#include <algorithm>

#include "config/option.hpp"

namespace settle::config {
namespace {

template <class Settings>
bool same_rows(const Settings& a, const Settings& b, std::span<const option_of<Settings>> rows) {
  return std::ranges::all_of(rows, [&](const auto& one) { return one.where.read(a) == one.where.read(b); });
}

bool same_webhook(const webhook_settings& a, const webhook_settings& b) {
  return a.source.name == b.source.name && a.source.signature.keys == b.source.signature.keys &&
         same_rows(a, b, webhook_options());
}

bool same_route(const topic_route& a, const topic_route& b) { return same_rows(a, b, route_options()); }

bool same_exchange(const rabbitmq::existing_exchange& a, const rabbitmq::existing_exchange& b) {
  return same_rows(a, b, exchange_options());
}

// They are of the process: where it listens, and what its HTTP server was made with.
bool is_fixed(const option& of) { return of.name == "listen" || of.name.starts_with("http."); }

}  // namespace

bool same_settings(const service_settings& a, const service_settings& b) {
  return a.name == b.name && same_rows(a, b, service_options()) &&
         std::ranges::equal(a.webhooks, b.webhooks, same_webhook) &&
         std::ranges::equal(a.routes, b.routes, same_route);
}

bool same_settings(const broker_settings& a, const broker_settings& b) {
  return a.name == b.name && same_rows(a, b, broker_options()) &&
         std::ranges::equal(a.options.rabbitmq.existing_exchanges, b.options.rabbitmq.existing_exchanges,
                            same_exchange);
}

std::vector<std::string> fixed_differences(const configuration& running, const configuration& next) {
  std::vector<std::string> names;
  for (const auto& one : all_options())
    if (is_fixed(one) && one.where.read(running) != one.where.read(next)) names.emplace_back(one.name);
  return names;
}

configuration with_fixed_of(const configuration& running, configuration next) {
  for (const auto& one : all_options())
    if (is_fixed(one)) one.where.write(next, one.where.read(running));
  return next;
}

}  // namespace settle::config
