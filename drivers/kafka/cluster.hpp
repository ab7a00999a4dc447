// What all parts of the driver ask the servers: topics, and how far their logs reach.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kafka/client.hpp"
#include "wire/mapping.hpp"

namespace settle::inline v0::kafka {

// Why a topic of this name cannot be in Kafka; empty: it can.
std::string unusable_name(const std::string& name);

// Offsets that a log has: from `low` up to the one before `high`.
struct extent {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// Thread-safe. Names are those of the servers, unless they are said to be short.
class cluster {
 public:
  cluster(address to, const options& with);

  const address& where() const { return to_; }
  const options& settings() const { return with_; }
  // Of topics; groups have the prefix alone.
  std::string full_name(const std::string& short_name) const;
  std::string short_name(const std::string& full_name) const;
  std::string group_name(const std::string& short_name) const { return with_.prefix + short_name; }
  // How messages of a topic of others are read, by its full name; null: as CloudEvents.
  const mapper* mapping_of(const std::string& topic) const;

  // The client that asks, and joins nothing.
  client& asking();

  // How many partitions the topic has; nothing: there is no such topic.
  std::optional<int> partitions(const std::string& topic, const limit& within);
  // Likewise, and makes it if that is wanted. Throws `refused`.
  int ensure(const std::string& topic, const limit& within);
  // All that have the prefix or are named in the options, and their partitions.
  std::map<std::string, int> topics(const limit& within);

  extent extent_of(const std::string& topic, int partition, const limit& within);
  // Of the first so many partitions at once.
  std::vector<extent> extents_of(const std::string& topic, int partitions, const limit& within);

 private:
  void create(const std::string& topic, const limit& within);
  void ask_in_turn(const limit& within, const std::string& about,
                   const std::function<rd_kafka_resp_err_t(client&, int)>& question);
  partition_list ends_of(const std::string& topic, int partitions, std::int64_t which, const limit& within);
  bool is_existing(const std::string& topic) const { return mappers_.contains(topic); }

  address to_;
  options with_;
  std::map<std::string, mapper> mappers_;  // by the full names of topics of others
  std::mutex mutex_;
  std::unique_ptr<client> asking_;
};

}  // namespace settle::inline v0::kafka
