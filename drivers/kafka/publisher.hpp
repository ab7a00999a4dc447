// Publishing with delivery reports, by an idempotent producer that stops at the first gap.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kafka/cluster.hpp"
#include "kafka/reports.hpp"
#include "settle/driver/broker.hpp"

namespace settle::inline v0::kafka {

class log_publisher final : public publisher, listener {
 public:
  explicit log_publisher(cluster& at) : at_(at) {}

  std::vector<publish_result> publish(std::span<const message> batch, const call_limits& limits) override;

 private:
  void publish_alone(std::span<const message> batch, const std::vector<std::size_t>& accepted,
                     std::vector<publish_result>& results, const limit& within);
  void ensure_topics(std::span<const message> batch, const std::vector<std::size_t>& accepted,
                     const limit& within);
  void find_topic(const std::string& topic, const limit& within);
  void note_lost_topics(std::span<const message> batch, const std::vector<publish_result>& results);
  void send(std::span<const message> batch, const std::vector<std::size_t>& wanted, const limit& within);
  bool produce(const message& what, std::size_t index, const limit& within);
  void await_reports(const limit& within);
  void end_attempt(const limit& within);
  void connect();
  void reported(const rd_kafka_message_t& sent) override;

  cluster& at_;
  std::mutex turn_;
  std::condition_variable_any turn_changed_;
  bool busy_ = false;
  // What follows belongs to whoever has the turn.
  reports* current_ = nullptr;  // before the producer, which reports to it
  std::string trouble_ = {};    // the first failure of an attempt, for people
  std::set<std::string> known_topics_;
  std::set<std::string> lost_topics_;  // that were known, and were not there any more
  std::unique_ptr<client> producer_;
};

}  // namespace settle::inline v0::kafka
