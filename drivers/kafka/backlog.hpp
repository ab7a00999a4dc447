// What a group has not acknowledged of the messages that some topics had at one moment.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kafka/group_offsets.hpp"
#include "kafka/log_reader.hpp"
#include "settle/driver/broker.hpp"

namespace settle::inline v0::kafka {

class group_backlog final : public backlog {
 public:
  // Names are those of the servers, with the prefix.
  group_backlog(cluster& at, std::string group, const std::vector<std::string>& topics, const limit& within);

  bool is_done(const call_limits& limits) override;

 private:
  struct end {
    std::int64_t at = 0;
    std::int64_t first_message = -1;  // that is known to be before it
  };
  bool is_done(const std::string& topic, int partition, std::int64_t next, const limit& within);
  std::int64_t first_message(const std::string& topic, int partition, std::int64_t from, const limit& within);

  cluster& at_;
  log_reader reader_;
  std::string group_;
  std::map<std::string, std::map<int, end>> ends_;  // of partitions that are not known to be done
};

}  // namespace settle::inline v0::kafka
