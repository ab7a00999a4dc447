// A Kafka seen from outside: its topics, its groups with their lag, and its messages.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kafka/group_offsets.hpp"
#include "kafka/log_reader.hpp"
#include "settle/driver/broker_inspection.hpp"

namespace settle::inline v0::kafka {

class cluster_inspection final : public broker_inspection, broker_log {
 public:
  explicit cluster_inspection(cluster& at) : at_(at), reader_(at) {}

  std::string name() const override { return at_.where().name(); }
  std::optional<std::int64_t> stored_bytes() override { return std::nullopt; }
  std::vector<inspected_topic> topics(
      std::size_t topics_max = std::numeric_limits<std::size_t>::max()) override;
  std::vector<inspected_group> groups(const inspect_groups& wanted = {}) override;
  broker_log* log() override { return this; }

 private:
  using starts = std::map<int, std::int64_t>;

  std::vector<placed_message> read(const std::string& topic, const log_position& after,
                                   const read_limits& limits) override;
  log_position before_last(const std::string& topic, std::size_t messages) override;
  void scan(const std::function<void(std::string_view group, std::string_view topic)>& group,
            const std::function<void(const kept_message&)>& kept) override;
  std::unique_ptr<wakeup> arrivals() override;

  std::string short_group(const std::string& full) const { return full.substr(at_.settings().prefix.size()); }
  std::vector<placed_message> read_all(const std::string& topic, const starts& from, std::size_t most,
                                       const limit& within);
  starts since(const std::string& topic, const log_position& after, const limit& within);
  static starts add_lag(inspected_group& to, const starts& next, const std::vector<extent>& extents);
  void add_times(inspected_group& to, const std::string& topic, const starts& waiting, const limit& within);

  cluster& at_;
  std::mutex mutex_;  // one question at a time
  log_reader reader_;
};

}  // namespace settle::inline v0::kafka
