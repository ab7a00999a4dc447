// What docs/guides/kafka.md quotes. Nothing here connects: the server need not be there.
//
// Usage: kafka_broker <folder>      an existing, empty folder for the database files
#include <cstdio>
#include <exception>
#include <string>

#include "settle/consume.hpp"
#include "settle/database.hpp"
#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/kafka.hpp"
#include "settle/relay.hpp"
#include "settle/sqlite.hpp"

namespace {

void connect(settle::database& orders, settle::database& shipping, const std::string& url) {
  // [snippet: kafka_open]
  auto broker = settle::kafka::open(url, {.partitions = 16});  // kafka://k1.internal,k2.internal
  settle::relay relay(orders, broker->publishing());
  settle::consumer warehouse(shipping, *broker, {.name = "warehouse"});
  // [end]
}

void wait_for_topics(const std::string& url) {
  // [snippet: kafka_hold]
  settle::kafka::options strict;
  strict.missing_topics = settle::kafka::missing_topic::hold;
  // [end]
  settle::kafka::open(url, strict);
}

void read_topics_of_others(const std::string& url) {
  // [snippet: kafka_strangers]
  settle::kafka::options with;
  with.existing_topics = {{.name = "payments.in", .topic = "payments"},
                          {.name = "outbox.event.order", .topic = "orders"}};
  with.existing_topics[0].mapping.id = {"{header:payment-id}", "{payload:/orderId}-{header:event}"};
  with.existing_topics[0].mapping.type = {"{header:event}"};
  with.existing_topics[1].mapping = settle::kafka::debezium_outbox();
  // [end]
  settle::kafka::open(url, with);
}

}  // namespace

int main(int count, char** words) try {
  if (count != 2) return 2;
  const std::string folder = words[1];
  auto orders = settle::sqlite::open(folder + "/orders.db");
  auto shipping = settle::sqlite::open(folder + "/shipping.db");
  settle::migrate(*orders);
  settle::migrate(*shipping);
  const std::string url = "kafka://settle:secret@127.0.0.1:1";  // nobody listens there
  connect(*orders, *shipping, url);
  wait_for_topics(url);
  read_topics_of_others(url);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
