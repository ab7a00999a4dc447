// The broker of a scenario that has to end well on every kind of broker: the embedded one, one with logs and
// one that hands out single messages, both in memory; RabbitMQ and Kafka in programs of their own.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "support/memory_log_server.hpp"
#include "support/memory_queue_server.hpp"
#include "support/order_world.hpp"

namespace settle::test {

enum class broker_kind { embedded, log_in_memory, queue_in_memory, rabbitmq, kafka };

// A server of its own that a scenario uses.
class scenario_server {
 public:
  virtual ~scenario_server() = default;
  virtual std::unique_ptr<broker> open(const environment& env) = 0;
  virtual void reset() = 0;
  virtual void forget_acknowledgements(const std::string& consumer) = 0;
  virtual std::int64_t messages_stored() = 0;
  // For how long nothing has to come before a scenario believes that nothing will.
  virtual duration quiet_time() const { return std::chrono::milliseconds(250); }
  // The same while something is missing.
  virtual duration patience() const { return quiet_time(); }
};

// Set in programs that link support/rabbitmq_scenario.cpp or support/kafka_scenario.cpp: they run the
// scenarios on that server, and there alone.
struct scenarios_on_a_server {
  broker_kind kind = broker_kind::embedded;
  std::unique_ptr<scenario_server> (*make)(const std::vector<std::string>& consumers) = nullptr;
  std::string (*missing)() = nullptr;  // why it cannot be had here, or empty
};
scenarios_on_a_server& on_a_server();

// That the scenarios of this program run on.
std::vector<broker_kind> every_broker();

std::string name_of(broker_kind kind);
inline void PrintTo(broker_kind kind, std::ostream* out) { *out << name_of(kind); }

// Outlives the worlds that use it, and the processes that they run in.
class scenario_broker {
 public:
  // The groups of these consumers get every order from the beginning.
  explicit scenario_broker(broker_kind kind, std::vector<std::string> consumers = {"warehouse"},
                           duration session_timeout = std::chrono::seconds(10));

  // The same world, on this broker.
  world_options with(world_options options);

  // An empty one takes its place. The embedded one is emptied with its folder.
  void reset();

  // What the consumer has acknowledged comes again, all of it. The consumer must have left.
  void forget_acknowledgements(order_world& in, const std::string& consumer);

  // How many different messages the broker has been given.
  std::int64_t messages_stored(order_world& in) const;

  // Nothing was lost, doubled or invented, and if this broker keeps keys together nothing was reordered.
  bool is_intact(const verify_report& report) const;

  // Why it cannot be had here; empty: it can. Nothing else may be called then.
  std::string missing() const;

  broker_kind kind() const { return kind_; }
  memory_server* in_memory() const { return log_ ? static_cast<memory_server*>(log_.get()) : queue_.get(); }
  memory_log_server& log() const { return *log_; }
  memory_queue_server& queue() const { return *queue_; }

 private:
  broker_kind kind_;
  std::vector<std::string> consumers_;
  duration session_timeout_;
  std::unique_ptr<memory_log_server> log_;
  std::unique_ptr<memory_queue_server> queue_;
  std::unique_ptr<scenario_server> server_;
};

}  // namespace settle::test
