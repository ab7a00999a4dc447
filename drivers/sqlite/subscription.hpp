// One member of a consumer group at the embedded broker.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "broker/ack_tracker.hpp"
#include "settle/driver/broker.hpp"
#include "sql/ownership.hpp"
#include "sqlite/broker.hpp"
#include "sqlite/log_reader.hpp"

namespace settle::inline v0::sqlite {

class embedded_subscription final : public subscription {
 public:
  embedded_subscription(embedded_broker& home, const subscribe_options& options);

  fetched fetch(std::size_t messages_max, const call_limits& limits) override;
  void acknowledge(std::span<const delivery_tag> done, const call_limits& limits) override;
  void doubt(std::uint32_t partition) override;
  std::vector<settled_partition> settled() const override;
  void leave() noexcept override;
  wakeup& arrivals() override { return *arrivals_; }

 private:
  struct partition_state {
    ack_tracker tracker;
    std::uint32_t session = 0;
  };
  struct topic_state {
    std::string name;
    topic_info info;
    std::unique_ptr<sql::ownership> ownership;
    std::map<int, partition_state> partitions;
  };

  void refresh_if_due(const call_limits& limits);
  void assign(topic_state& topic, std::uint32_t index);
  void commit_acknowledged(const std::stop_token& stop);
  void lose(topic_state& topic, std::uint32_t index, const char* why);
  std::vector<delivery> deliver(std::size_t messages_max);

  embedded_broker& home_;
  std::string group_;
  std::vector<topic_state> topics_;
  std::unique_ptr<wakeup> arrivals_;
  std::function<void()> before_revoked_;
  bool doubted_ = false;  // some partition was, and the file has not been asked since
  std::uint32_t next_session_ = 1;
  std::vector<std::uint32_t> revoked_;        // to be reported by the next fetch
  std::vector<assigned_partition> assigned_;  // likewise
  std::size_t turn_ = 0;                      // which partition is read first, so that none starves
  log_reader log_;                            // reads the names of topics_: goes before them
};

}  // namespace settle::inline v0::sqlite
