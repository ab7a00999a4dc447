#include "kafka/backlog.hpp"

#include <algorithm>
#include <utility>

namespace settle::inline v0::kafka {

group_backlog::group_backlog(cluster& at, std::string group, const std::vector<std::string>& topics,
                             const limit& within)
    : at_(at), reader_(at), group_(std::move(group)) {
  for (const auto& topic : topics)
    for (int i = 0, count = at_.partitions(topic, within).value_or(0); i < count; ++i)
      if (const auto kept = at_.extent_of(topic, i, within); kept.high > kept.low)
        ends_[topic][i].at = kept.high;
}

bool group_backlog::is_done(const call_limits& limits) {
  const auto within = limit::of(limits);
  std::map<std::string, int> topics;
  for (const auto& [topic, ends] : ends_) topics[topic] = ends.rbegin()->first + 1;
  const auto committed = read_group(at_, group_, topics, within);
  for (auto& [topic, ends] : ends_) {
    const auto known = committed.next.find(topic);
    std::erase_if(ends, [&, &topic = topic](const auto& one) {
      std::int64_t next = 0;
      if (known != committed.next.end())
        if (const auto at = known->second.find(one.first); at != known->second.end()) next = at->second;
      return next >= one.second.at || is_done(topic, one.first, next, within);
    });
  }
  std::erase_if(ends_, [](const auto& one) { return one.second.empty(); });
  return ends_.empty();
}

// What lies behind a committed offset may be no message: marks of transactions, or what was compacted. That
// is looked at once for each place where the group stands.
bool group_backlog::is_done(const std::string& topic, int partition, std::int64_t next, const limit& within) {
  auto& end = ends_[topic][partition];
  if (next <= end.first_message) return false;
  const auto from = std::max(next, at_.extent_of(topic, partition, within).low);
  if (from >= end.at) return true;
  end.first_message = first_message(topic, partition, from, within);
  return end.first_message < 0 || end.first_message >= end.at;
}

std::int64_t group_backlog::first_message(const std::string& topic, int partition, std::int64_t from,
                                          const limit& within) {
  std::int64_t found = -1;
  reader_.read(topic, {{partition, from}}, 1, within,
               [&](const rd_kafka_message_t& one) { found = found < 0 ? one.offset : found; });
  return found;
}

}  // namespace settle::inline v0::kafka
