// A RabbitMQ seen from outside. AMQP has no lists, so the registry tells what there is, and queues are asked
// one by one. Messages cannot be read without taking them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rabbitmq/topology.hpp"
#include "settle/driver/broker_inspection.hpp"

namespace settle::inline v0::rabbitmq {

class server_inspection final : public broker_inspection {
 public:
  server_inspection(address to, const options& with) : to_(std::move(to)), with_(with) {}

  std::string name() const override { return to_.name(); }
  std::string trouble() override;
  std::optional<std::int64_t> stored_bytes() override { return std::nullopt; }
  std::vector<inspected_topic> topics(
      std::size_t topics_max = std::numeric_limits<std::size_t>::max()) override;
  std::vector<inspected_group> groups(const inspect_groups& wanted = {}) override;

 private:
  topology& connected(const limit& within);
  std::optional<inspected_group> group(topology& at, const registered& of, const limit& within) const;

  address to_;
  options with_;
  std::mutex mutex_;  // one question at a time
  std::unique_ptr<connection> on_;
  std::unique_ptr<topology> topology_;
  std::unique_ptr<connection> probe_on_;
  std::unique_ptr<channel> probing_;  // with confirms
};

}  // namespace settle::inline v0::rabbitmq
