#include "compose/kafka.hpp"

#include "kafka/address.hpp"

namespace settle::compose {

std::string missing_kafka() { return {}; }

std::unique_ptr<broker> open_kafka(const std::string& url, const kafka::options& with) {
  return kafka::open(url, with);
}

std::string kafka_without_secrets(const std::string& url) {
  const auto at = kafka::parse_url(url);
  return (at.tls ? "kafkas://" : "kafka://") + at.list();
}

}  // namespace settle::compose
