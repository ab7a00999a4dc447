// What all parts of the driver ask the servers: topics, and how far their logs reach.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kafka/client.hpp"

namespace settle::inline v0::kafka {

// Why a topic of this name cannot be in Kafka; empty: it can.
std::string unusable_name(const std::string& name);

// Offsets that a log has: from `low` up to the one before `high`.
struct extent {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// Thread-safe. Names are those of the servers, with the prefix.
class cluster {
 public:
  cluster(address to, const options& with) : to_(std::move(to)), with_(with) {}

  const address& where() const { return to_; }
  const options& settings() const { return with_; }
  std::string full_name(const std::string& of) const { return with_.prefix + of; }

  // The client that asks, and joins nothing.
  client& asking();

  // How many partitions the topic has; nothing: there is no such topic.
  std::optional<int> partitions(const std::string& topic, const limit& within);
  // Likewise, and makes it if that is wanted. Throws `refused`.
  int ensure(const std::string& topic, const limit& within);
  // All that have the prefix, and their partitions.
  std::map<std::string, int> topics(const limit& within);

  extent extent_of(const std::string& topic, int partition, const limit& within);

 private:
  void create(const std::string& topic, const limit& within);

  address to_;
  options with_;
  std::mutex mutex_;
  std::unique_ptr<client> asking_;
};

}  // namespace settle::inline v0::kafka
