// The plain librdkafka interface, as its examples use it, with the headers and the settings of the driver;
// and what the benches on Kafka share. The servers are those that SETTLE_TEST_KAFKA and SETTLE_TEST_POSTGRES
// name (see tools/servers); without them nothing is measured.
#pragma once

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness.hpp"
#include "settle/driver/broker.hpp"
#include "settle/kafka.hpp"

namespace bench {

// A topic under a prefix of its own, as the driver makes it. Deleted at the end.
class raw_topic {
 public:
  raw_topic(std::string url, const std::string& prefix);
  ~raw_topic();
  raw_topic(const raw_topic&) = delete;
  raw_topic& operator=(const raw_topic&) = delete;

  std::unique_ptr<settle::broker> open() const;
  std::string servers() const;  // host:port,…
  std::string name() const;
  std::string group() const;

 private:
  std::string url_;
  std::string prefix_;
};

// Idempotent, acks=all.
class raw_producer {
 public:
  explicit raw_producer(const raw_topic& to);
  ~raw_producer();
  raw_producer(const raw_producer&) = delete;
  raw_producer& operator=(const raw_producer&) = delete;

  // `at_once` are sent before their reports are awaited, as the relay does.
  void publish(std::span<const settle::message> messages, std::size_t at_once);

 private:
  void publish_one(const settle::message& m);
  void await_reports();
  static void reported(rd_kafka_t*, const rd_kafka_message_t* sent, void* self);

  std::string topic_;
  rd_kafka_t* handle_;
  std::size_t open_ = 0;
  std::size_t failed_ = 0;
};

// A member of the group, which commits by itself when it is told.
class raw_consumer {
 public:
  explicit raw_consumer(const raw_topic& from);
  ~raw_consumer();
  raw_consumer(const raw_consumer&) = delete;
  raw_consumer& operator=(const raw_consumer&) = delete;

  struct delivered {
    std::string id, key, body;
  };
  delivered next();
  // Of everything that was delivered; awaits the answer.
  void commit();

 private:
  rd_kafka_t* handle_;
  rd_kafka_queue_t* queue_;
};

// Runs `body` with the URL of Kafka and the connection string of PostgreSQL and writes its reports; none if
// one of the servers is missing.
int run_on_kafka(int argc, char** argv,
                 const std::function<std::vector<report>(const options&, const std::string& kafka,
                                                         const std::string& postgres)>& body);

}  // namespace bench
