#include "compose/rabbitmq.hpp"

#include "rabbitmq/address.hpp"
#include "rabbitmq/routing_key.hpp"

namespace settle::compose {

std::string missing_rabbitmq() { return {}; }

std::unique_ptr<broker> open_rabbitmq(const std::string& url, const rabbitmq::options& with) {
  return rabbitmq::open(url, with);
}

std::string rabbitmq_without_secrets(const std::string& url) {
  const auto at = rabbitmq::parse_url(url);
  const auto vhost = at.vhost == "/" ? "" : at.vhost;
  return std::string(at.tls ? "amqps://" : "amqp://") + at.host + ":" + std::to_string(at.port) + "/" + vhost;
}

std::string unusable_routing_key(std::string_view text) { return rabbitmq::unusable_routing_key(text); }

}  // namespace settle::compose
