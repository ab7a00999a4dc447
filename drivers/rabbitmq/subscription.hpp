// One member of a group. It consumes from every queue of the group, each on a channel of its own, and the
// server lets one member of each queue be the active one. Whether it is us shows with the first message: then
// the queue is assigned. When others come, each member gives away what is above its part.
//
// Messages are acknowledged, or given back by closing their channel; never one by one, which changes the
// order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rabbitmq/connection.hpp"
#include "rabbitmq/topology.hpp"
#include "rabbitmq/unacknowledged.hpp"
#include "settle/driver/broker.hpp"
#include "wire/mapping.hpp"

namespace settle::inline v0::rabbitmq {

// Throws invalid_name or invalid_argument if it is nothing that can be subscribed to.
void check_subscription(const subscribe_options& wanted, const names& called);

class queue_subscription final : public subscription, private wakeup {
 public:
  queue_subscription(const address& to, const options& with, const subscribe_options& wanted);
  ~queue_subscription() override;
  queue_subscription(const queue_subscription&) = delete;
  queue_subscription& operator=(const queue_subscription&) = delete;

  fetched fetch(std::size_t messages_max, const call_limits& limits) override;
  void acknowledge(std::span<const delivery_tag> done, const call_limits& limits) override;
  void doubt(std::uint32_t partition) override;
  std::vector<settled_partition> settled() const override { return {}; }
  void leave() noexcept override;
  wakeup& arrivals() override { return *this; }

 private:
  struct queue_state {
    std::string name;
    const std::string* topic = nullptr;
    std::uint32_t partition = 0;
    std::unique_ptr<channel> on = {};  // null: no session
    std::uint32_t session = 0;
    bool assigned = false;
    bool probed = false;  // since the number of members changed
    unacknowledged open = {};
    std::vector<milestone> milestones = {};  // that have come, and are not passed
    const mapper* foreign = nullptr;         // how its messages are read, if it is not of our making
    steady::time_point ask_again = {};       // likewise: somebody else reads it until then at least
  };
  struct topic_state {
    std::string name;
    std::vector<queue_state> queues = {};
    std::int64_t members = 1;
    std::optional<mapper> foreign = std::nullopt;  // its one queue is not of our making
  };

  void wait(duration at_most, std::stop_token stop) override;
  void connect(const limit& within);
  void disconnect();
  void add_topic(const std::string& name);
  void join(topology& at, const limit& within);
  void ask(channel& on, const amqp_basic_consume_t& what, const std::string& topic, const limit& within);
  void consume(queue_state& from, const limit& within);
  void consume_alone(queue_state& from, const limit& within);
  void end_session(queue_state& of);
  void notice_ends();
  void notice_probes();
  void notice_milestones();
  void pass_milestones(queue_state& of, const limit& within);
  void assign(queue_state& to);
  void balance_if_due(const limit& within);
  void balance(topic_state& of, const limit& within);
  void probe(const queue_state& to, const limit& within);
  void give_up(queue_state& from, const limit& within);
  void finish_acknowledging(const limit& within);
  void send_acknowledgements(const limit& within);
  void count_unacknowledged();
  queue_state& queue_of(std::uint32_t partition);
  static message read(arrived_message&& one, const queue_state& from);
  std::vector<delivery> deliver(std::size_t messages_max);

  address to_;
  options with_;
  std::string group_;
  std::function<void()> before_revoked_;
  std::unique_ptr<connection> on_;  // outlives the channels, whatever ends the constructor
  std::vector<topic_state> topics_;
  std::vector<queue_state*> queues_;  // of all topics
  std::unique_ptr<topology> topology_;
  std::unique_ptr<channel> control_;
  std::vector<delivery_tag> unsent_;  // done, and not said yet
  int acknowledging_ = 0;             // answers of the server that are to come
  std::uint32_t sessions_ = 0;
  std::uint64_t seen_ = 0;    // arrivals
  std::int64_t counted_ = 0;  // unacknowledged messages, as the metric has them
  std::size_t turn_ = 0;      // which queue is read first, so that none starves
  timestamp balanced_at_;
  std::vector<std::uint32_t> revoked_;        // to be reported by the next fetch
  std::vector<assigned_partition> assigned_;  // likewise
};

}  // namespace settle::inline v0::rabbitmq
