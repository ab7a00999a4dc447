#include "sqlite/subscription.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/if_possible.hpp"
#include "queries/broker.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::sqlite {
namespace {

// A tag's partition number holds the topic's index in the subscription and the partition within it.
constexpr std::uint32_t partition_bits = 16;
constexpr std::uint32_t partition_mask = (1U << partition_bits) - 1;

constexpr std::int64_t expire_when_idle = 100;  // messages per partition and renewal of the lease

std::uint32_t tag_of(std::uint32_t topic_index, int partition) {
  return topic_index << partition_bits | static_cast<std::uint32_t>(partition);
}

}  // namespace

embedded_subscription::embedded_subscription(embedded_broker& home, const subscribe_options& options)
    : home_(home), group_(options.group), arrivals_(home.file().watch()), log_(home.file()) {
  auto tx = home_.file().begin();
  for (const auto& name : options.topics) {
    topic_state topic;
    topic.name = name;
    topic.info = home_.ensure_topic(tx, name);
    tx.execute(queries::broker::add_group, {group_, topic.info.id});
    topic.ownership = std::make_unique<sql::ownership>(
        home_.file(), sql::ownership::settings{fmt::format("group/{}/{}", topic.info.id, group_),
                                               topic.info.partitions, home_.settings().lease_ttl});
    topics_.push_back(std::move(topic));
  }
  tx.commit("broker.subscribe");
}

void embedded_subscription::refresh_if_due() {
  if (std::ranges::none_of(topics_, [](const auto& t) { return t.ownership->due(); })) return;
  auto tx = home_.file().begin();
  std::vector<sql::ownership_change> changes;
  for (auto& topic : topics_) {
    tx.execute(queries::broker::add_group, {group_, topic.info.id});  // it was removed while we slept
    changes.push_back(topic.ownership->refresh(tx));
    for (const auto& [partition, unused] : topic.partitions)
      home_.expire(tx, topic.info.id, partition, expire_when_idle);
  }
  tx.commit("broker.lease");
  for (std::size_t i = 0; i < topics_.size(); ++i) {
    auto& topic = topics_[i];
    topic.ownership->applied();
    for (const int partition : changes[i].lost) {
      topic.partitions.erase(partition);
      revoked_.push_back(tag_of(static_cast<std::uint32_t>(i), partition));
    }
    for (const int partition : changes[i].gained) {
      const auto& held = topic.ownership->held().at(partition);
      topic.partitions.insert_or_assign(partition, partition_state{ack_tracker(held.position)});
    }
  }
}

fetched embedded_subscription::fetch(std::size_t messages_max) {
  fetched out;
  commit_acknowledged();
  refresh_if_due();
  if (messages_max > 0) out.deliveries = deliver(messages_max);
  out.revoked = std::exchange(revoked_, {});
  return out;
}

// Nothing is counted as delivered before all of it is read: a failed read must not leave a gap behind.
std::vector<delivery> embedded_subscription::deliver(std::size_t messages_max) {
  struct origin {
    std::uint32_t tag;
    partition_fence fence;
    ack_tracker* tracker;
  };
  log_request wanted{{}, messages_max};
  std::vector<origin> origins;
  for (std::uint32_t i = 0; i < topics_.size(); ++i) {
    auto& topic = topics_[i];
    for (auto& [partition, state] : topic.partitions) {
      wanted.from.push_back({topic.info.id, topic.name, partition, state.tracker.delivered_through()});
      origins.push_back({tag_of(i, partition),
                         {fmt::format("{}/{}/{}", home_.id(), topic.name, partition),
                          topic.ownership->held().at(partition).epoch},
                         &state.tracker});
    }
  }
  if (origins.empty()) return {};
  const auto first = static_cast<std::ptrdiff_t>(turn_++ % origins.size());
  std::ranges::rotate(wanted.from, wanted.from.begin() + first);
  std::ranges::rotate(origins, origins.begin() + first);
  std::vector<delivery> all;
  for (auto& one : log_.read(wanted)) {
    const auto& from = origins[one.from];
    from.tracker->delivered(one.position);
    all.push_back({std::move(one.content), {from.tag, one.position}, from.fence, one.stored_at});
  }
  return all;
}

void embedded_subscription::acknowledge(std::span<const delivery_tag> done) {
  for (const auto& tag : done) {
    auto& topic = topics_.at(tag.partition >> partition_bits);
    const auto found = topic.partitions.find(static_cast<int>(tag.partition & partition_mask));
    if (found != topic.partitions.end()) found->second.tracker.done(tag.position);
  }
  commit_acknowledged();
}

std::vector<settled_partition> embedded_subscription::settled() const {
  std::vector<settled_partition> all;
  for (std::uint32_t i = 0; i < topics_.size(); ++i)
    for (const auto& [partition, state] : topics_[i].partitions)
      all.push_back({tag_of(i, partition), fmt::format("{}/{}", topics_[i].name, partition),
                     state.tracker.committed_through()});
  return all;
}

// Positions move in one transaction per topic. What fails here is tried again by the next call:
// the trackers remember.
void embedded_subscription::commit_acknowledged() {
  for (std::uint32_t i = 0; i < topics_.size(); ++i) {
    auto& topic = topics_[i];
    std::map<int, std::int64_t> positions;
    for (const auto& [partition, state] : topic.partitions)
      if (state.tracker.has_news()) positions[partition] = state.tracker.done_through();
    if (positions.empty()) continue;
    try {
      auto tx = home_.file().begin();
      topic.ownership->advance(tx, positions);
      tx.commit("broker.acknowledge");
    } catch (const error& e) {
      if (e.code() != errc::ownership_lost) throw;
      lose(topic, i, e.what());
      continue;
    }
    for (const auto& [partition, position] : positions)
      topic.partitions.at(partition).tracker.committed(position);
  }
}

// One lost partition means that this member slept past its lease: nothing it holds can be relied on.
void embedded_subscription::lose(topic_state& topic, std::uint32_t index, const char* why) {
  for (const auto& [partition, unused] : topic.partitions) revoked_.push_back(tag_of(index, partition));
  topic.partitions.clear();
  topic.ownership->drop_all();
  home_.file().env().log->write(log_level::warning, "partitions_lost",
                                {{"group", group_}, {"topic", topic.name}, {"error", why}});
}

void embedded_subscription::leave() noexcept {
  try {
    commit_acknowledged();
    auto tx = home_.file().begin();
    for (auto& topic : topics_) topic.ownership->release_all(tx);
    tx.commit("broker.leave");
    for (auto& topic : topics_) {
      topic.ownership->drop_all();
      topic.partitions.clear();
    }
  } catch (const std::exception& e) {
    if_possible([&] {
      home_.file().env().log->write(log_level::warning, "leave_failed",
                                    {{"group", group_}, {"error", e.what()}});
    });
  }
}

}  // namespace settle::inline v0::sqlite
