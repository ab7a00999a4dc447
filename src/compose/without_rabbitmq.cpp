// For builds with -DSETTLE_RABBITMQ=OFF.
#include "compose/rabbitmq.hpp"
#include "settle/error.hpp"

namespace settle::compose {
namespace {

[[noreturn]] void refuse() { throw error(errc::invalid_argument, missing_rabbitmq()); }

}  // namespace

std::string missing_rabbitmq() {
  return "this build of Settle has no driver for RabbitMQ: build Settle with -DSETTLE_RABBITMQ=ON, which "
         "needs "
         "librabbitmq, or use another broker";
}

std::unique_ptr<broker> open_rabbitmq(const std::string&, const rabbitmq::options&) { refuse(); }
std::string rabbitmq_without_secrets(const std::string&) { refuse(); }

std::string unusable_routing_key(std::string_view) { return {}; }

}  // namespace settle::compose
