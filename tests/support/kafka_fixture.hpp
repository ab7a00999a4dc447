// The private Kafka of tools/servers, and of it a corner for each test.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "settle/kafka.hpp"

namespace settle::test {

// From the environment, or else from `tools/servers env`; empty if there is no such server.
std::string kafka_url();

// The same server over TLS with a user, and the file with the authority that vouches for it.
std::string kafka_secure_url();
std::string kafka_ca_file();

// Why tests on Kafka cannot run here; empty if they can. Throws if CI=true, where they have to.
std::string kafka_missing();

int kafka_port(const std::string& url);

// Topics and groups with a prefix of their own, deleted at the end.
class kafka_corner {
 public:
  explicit kafka_corner(std::string url = kafka_url());
  kafka_corner(std::string url, std::string prefix) : url_(std::move(url)), prefix_(std::move(prefix)) {}
  ~kafka_corner();
  kafka_corner(const kafka_corner&) = delete;
  kafka_corner& operator=(const kafka_corner&) = delete;

  const std::string& prefix() const { return prefix_; }
  // With Kafka's own means, behind the driver's back. Names are without the prefix.
  void create_topic(const std::string& name, int partitions,
                    const std::vector<std::pair<std::string, std::string>>& settings = {}) const;
  void delete_topic(const std::string& name) const;
  void delete_records(const std::string& topic, int partition, std::int64_t before) const;
  void delete_group(const std::string& name) const;
  // The group has acknowledged nothing of the topic. It must have no members.
  void reset_group(const std::string& name, const std::string& topic) const;
  void set_offset(const std::string& group, const std::string& topic, int partition, std::int64_t next) const;
  // By partition: the offset that the group wants next, and how many messages it has not acknowledged.
  struct standing {
    std::int64_t next = 0;
    std::int64_t lag = 0;
  };
  std::map<int, standing> standing_of(const std::string& group, const std::string& topic) const;
  bool has_topic(const std::string& name) const;
  // A message of somebody else's program.
  void produce(const std::string& topic, const std::string& key, const std::string& value,
               const std::vector<std::pair<std::string, std::string>>& headers = {}) const;
  // The user of kafka_secure_url() may not write to it; or may again.
  void forbid_writing(const std::string& topic) const;
  void allow_writing(const std::string& topic) const;
  // Which server of a cluster has it.
  int leader_of(const std::string& topic, int partition) const;
  int coordinator_of(const std::string& group) const;
  // All replicas of all partitions are there.
  bool is_in_sync(const std::string& topic) const;
  // Everything goes, as if nobody had ever used it.
  void clear() const;

 private:
  std::string url_;
  std::string prefix_;
};

}  // namespace settle::test
