// Kafka against the broker conformance suite.
#include "conformance/broker_suite.hpp"
#include "settle/kafka.hpp"
#include "support/kafka_fixture.hpp"
#include "support/kafka_storage.hpp"

namespace settle::test {
namespace {

broker_driver kafka_driver() {
  return {.name = "kafka",
          .fresh = [] { return std::make_unique<kafka_storage>(); },
          .missing = kafka_missing,
          .knows_first_use = false,
          .orders_between_logs = false};
}

INSTANTIATE_TEST_SUITE_P(conformance, broker_conformance, ::testing::Values(kafka_driver()), broker_name);

}  // namespace
}  // namespace settle::test
