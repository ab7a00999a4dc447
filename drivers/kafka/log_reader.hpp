// Reads partitions from a place on, without a group.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "kafka/cluster.hpp"

namespace settle::inline v0::kafka {

class log_reader {
 public:
  explicit log_reader(cluster& at) : at_(at) {}

  using taker = std::function<void(const rd_kafka_message_t&)>;

  // Of a topic: from which offset on each partition is read, up to its end, or `most` messages of it.
  void read(const std::string& topic, const std::map<int, std::int64_t>& from, std::size_t most,
            const limit& within, const taker& take);

 private:
  client& reading();

  cluster& at_;
  std::unique_ptr<client> reading_;
};

}  // namespace settle::inline v0::kafka
