// What docs/guides/rabbitmq.md quotes. Nothing here connects: the server need not be there.
//
// Usage: rabbitmq_broker <folder>      an existing, empty folder for the database files
#include <cstdio>
#include <exception>
#include <string>

#include "settle/consume.hpp"
#include "settle/database.hpp"
#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/rabbitmq.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"

namespace {

void connect(settle::database& orders, settle::database& shipping, const std::string& url) {
  // [snippet: rabbitmq_open]
  auto broker = settle::rabbitmq::open(url, {.queues = 8});  // amqp://settle:secret@mq.internal/shop
  settle::relay relay(orders, broker->publishing());
  settle::consumer warehouse(shipping, *broker, {.name = "warehouse"});
  // [end]
}

void drop_what_nobody_wants(const std::string& url) {
  // [snippet: rabbitmq_discard]
  settle::rabbitmq::options drop;
  drop.without_groups = settle::rabbitmq::unrouted::discard;  // counted in settle_rabbitmq_discarded_total
  // [end]
  settle::rabbitmq::open(url, drop);
}

void use_what_others_have_made(const std::string& url) {
  // [snippet: rabbitmq_strangers]
  settle::rabbitmq::options with;
  with.existing_queues = {{.queue = "payments.in", .group = "bank", .topic = "payments"}};
  with.existing_queues[0].mapping.id = {"{property:message-id}", "{payload:/orderId}-{header:event}"};
  with.existing_queues[0].mapping.type = {"{header:event}"};
  with.existing_exchanges = {
      {.topic = "invoices", .exchange = "accounting", .routing_key = "invoice.{type}"}};
  // [end]
  settle::rabbitmq::open(url, with);
}

}  // namespace

int main(int count, char** words) try {
  if (count != 2) return 2;
  const std::string folder = words[1];
  auto orders = settle::sqlite::open(folder + "/orders.db");
  auto shipping = settle::sqlite::open(folder + "/shipping.db");
  settle::migrate(*orders);
  settle::migrate(*shipping);
  const std::string url = "amqp://settle:secret@127.0.0.1:1/shop";  // nobody listens there
  connect(*orders, *shipping, url);
  drop_what_nobody_wants(url);
  use_what_others_have_made(url);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
