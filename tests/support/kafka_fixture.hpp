// The private Kafka of tools/servers, and of it a corner for each test.
#pragma once

#include <string>
#include <vector>

#include "settle/kafka.hpp"

namespace settle::test {

// From the environment, or else from `tools/servers env`; empty if there is no such server.
std::string kafka_url();

// Why tests on Kafka cannot run here; empty if they can. Throws if CI=true, where they have to.
std::string kafka_missing();

int kafka_port(const std::string& url);

// Topics and groups with a prefix of their own, deleted at the end.
class kafka_corner {
 public:
  explicit kafka_corner(std::string url = kafka_url());
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
  // Everything goes, as if nobody had ever used it.
  void clear() const;

 private:
  std::string url_;
  std::string prefix_;
};

}  // namespace settle::test
