#include "storm_broker.hpp"

#include "orders.hpp"
#include "settle/codec.hpp"
#include "settle/driver/broker.hpp"
#include "settle/error.hpp"

namespace storm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* group = "warehouse";
const std::string topic(settle::codec<order_placed>::topic);

}  // namespace

settle::compose::broker_options storm_broker_options(const settings& of) {
  settle::compose::broker_options with;
  with.partitions = 4;
  with.lease_ttl = seconds(1);
  with.rabbitmq.queues = 4;
  with.rabbitmq.heartbeat = seconds(1);
  with.rabbitmq.balance_every = milliseconds(500);
  with.kafka.session_timeout = seconds(2);
  with.server.prefix = of.broker_prefix;
  return with;
}

std::unique_ptr<settle::broker> open_storm_broker(const settings& of) {
  return settle::compose::open_broker(of.broker.empty() ? of.data + "/broker.db" : of.broker,
                                      storm_broker_options(of));
}

void prepare_group(settle::broker& at, const std::string& url) {
  if (!settle::compose::is_broker_server(url)) return;
  remove_group(at, url);
  at.create_group(group, {topic});
}

void remove_group(settle::broker& at, const std::string& url) {
  if (!settle::compose::is_broker_server(url)) return;
  try {
    at.remove_group(group, topic);
  } catch (const settle::error& e) {
    if (e.code() != settle::errc::invalid_argument) throw;  // there is none
  }
}

}  // namespace storm
