// The plain librabbitmq interface, as its examples use it, with the headers that the driver sends; and what
// the benches on RabbitMQ share. The servers are those that SETTLE_TEST_RABBITMQ and SETTLE_TEST_POSTGRES
// name (see tools/servers); without them nothing is measured.
#pragma once

#include <amqp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness.hpp"
#include "settle/driver/broker.hpp"
#include "settle/rabbitmq.hpp"

namespace bench {

inline constexpr int queues = 8;  // settle::rabbitmq::options::queues
inline constexpr const char* group = "warehouse";

// What the driver makes for a group on a topic, under a prefix. Deleted at the end.
class raw_group {
 public:
  raw_group(std::string url, std::string prefix);
  ~raw_group();
  raw_group(const raw_group&) = delete;
  raw_group& operator=(const raw_group&) = delete;

  settle::rabbitmq::options options() const;
  std::unique_ptr<settle::broker> open() const { return settle::rabbitmq::open(url_, options()); }
  const std::string& url() const { return url_; }
  std::string exchange() const;
  std::string queue(int number) const;
  void purge() const;

 private:
  std::string url_;
  std::string prefix_;
};

// One connection with one channel.
class raw_rabbitmq {
 public:
  explicit raw_rabbitmq(const std::string& url);
  ~raw_rabbitmq();
  raw_rabbitmq(const raw_rabbitmq&) = delete;
  raw_rabbitmq& operator=(const raw_rabbitmq&) = delete;

  // With confirms; `at_once` are sent before those are awaited, as the relay does.
  void publish(const std::string& exchange, std::span<const settle::message> messages, std::size_t at_once);

  void consume(const raw_group& from, int prefetch);
  struct delivered {
    std::uint64_t tag = 0;
    std::string id, key, body;
  };
  delivered next();
  void acknowledge_through(std::uint64_t tag);

  void purge(const std::string& queue);
  void delete_queue(const std::string& queue);
  void delete_exchange(const std::string& exchange);

 private:
  void publish_one(const std::string& exchange, const settle::message& m);
  void await_confirms();
  void check(const char* what) const;

  amqp_connection_state_t conn_;
  std::uint64_t sent_ = 0;
  std::set<std::uint64_t> open_;  // not confirmed; the server confirms them in any order
};

// Runs `body` with the URL of RabbitMQ and the connection string of PostgreSQL and writes its reports; none
// if one of the servers is missing.
int run_on_rabbitmq(int argc, char** argv,
                    const std::function<std::vector<report>(const options&, const std::string& rabbitmq,
                                                            const std::string& postgres)>& body);

}  // namespace bench
