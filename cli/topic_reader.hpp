// Reads a topic's messages in the order in which the broker stored them, without joining a group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settle/broker.hpp"
#include "settle/database.hpp"

namespace settle::cli {

class topic_reader {
 public:
  // Throws a failure that lists the known topics if there is no such topic.
  topic_reader(database& broker, const std::string& topic);

  // Positions of up to `count_max` messages after `position`, or of the last ones; ascending.
  std::vector<std::int64_t> after(std::int64_t position, std::int64_t count_max);
  std::vector<std::int64_t> last(std::int64_t count_max);

  // One at a time: payloads may be large, and nobody should hold a screenful of them.
  message at(std::int64_t position);

  // The newest position in the broker's file.
  std::int64_t head();

 private:
  database& broker_;
  std::string name_;
  std::int64_t topic_ = 0;
  std::int64_t partitions_ = 0;
};

}  // namespace settle::cli
