// For builds with -DSETTLE_KAFKA=OFF.
#include "compose/kafka.hpp"
#include "settle/error.hpp"

namespace settle::compose {
namespace {

[[noreturn]] void refuse() { throw error(errc::invalid_argument, missing_kafka()); }

}  // namespace

std::string missing_kafka() {
  return "this build of Settle has no driver for Kafka: build Settle with -DSETTLE_KAFKA=ON, which needs "
         "librdkafka, or use another broker";
}

std::unique_ptr<broker> open_kafka(const std::string&, const kafka::options&) { refuse(); }
std::string kafka_without_secrets(const std::string&) { refuse(); }

}  // namespace settle::compose
