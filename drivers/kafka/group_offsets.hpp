// Which groups there are, and how far each is in each topic.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kafka/cluster.hpp"

namespace settle::inline v0::kafka {

struct group_offsets {
  std::string group;  // with the prefix
  std::int64_t members = 0;
  std::map<std::string, std::map<int, std::int64_t>> next;  // by topic and partition: what it wants next
};

// Those that have the prefix, by name, with what they have committed in these topics.
std::vector<group_offsets> read_groups(cluster& at, const std::map<std::string, int>& topics,
                                       std::size_t groups_max, const limit& within);

// What one group has committed in these topics, as above.
group_offsets read_group(cluster& at, const std::string& group, const std::map<std::string, int>& topics,
                         const limit& within);

// Kafka forgets what the group has committed of a topic, and the group with its last one. Throws
// invalid_argument if there is no such group, or one of its members is alive. Names are those of the servers.
void remove_group(cluster& at, const std::string& group, const std::string& topic, const limit& within);

}  // namespace settle::inline v0::kafka
