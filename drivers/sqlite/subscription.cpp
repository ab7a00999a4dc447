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
    : home_(home),
      group_(options.group),
      arrivals_(home.file().watch()),
      before_revoked_(options.before_revoked),
      log_(home.file()) {
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

void embedded_subscription::refresh_if_due(const call_limits& limits) {
  const bool due = std::ranges::any_of(topics_, [](const auto& t) { return t.ownership->due(); });
  if (!due && !doubted_) return;
  if (before_revoked_) before_revoked_();
  auto tx = home_.file().begin(limits.stop);
  std::vector<sql::ownership_change> changes;
  for (auto& topic : topics_) {
    tx.execute(queries::broker::add_group, {group_, topic.info.id});  // it was removed while we slept
    changes.push_back(topic.ownership->refresh(tx));
    for (const auto& [partition, unused] : topic.partitions)
      home_.expire(tx, topic.info.id, partition, expire_when_idle);
  }
  tx.commit("broker.lease");
  doubted_ = false;
  for (std::size_t i = 0; i < topics_.size(); ++i) {
    auto& topic = topics_[i];
    topic.ownership->applied();
    for (const int partition : changes[i].lost) {
      topic.partitions.erase(partition);
      revoked_.push_back(tag_of(static_cast<std::uint32_t>(i), partition));
    }
    for (const int partition : changes[i].gained) topic.partitions.erase(partition);
    assign(topic, static_cast<std::uint32_t>(i));
  }
}

// What is ours by the file and has no session: it was gained, or doubted.
void embedded_subscription::assign(topic_state& topic, std::uint32_t index) {
  for (const auto& [partition, held] : topic.ownership->held()) {
    const auto session = next_session_;
    if (!topic.partitions.try_emplace(partition, partition_state{ack_tracker(held.position), session}).second)
      continue;
    ++next_session_;
    assigned_.push_back(
        {tag_of(index, partition), session, fmt::format("{}/{}/{}", home_.id(), topic.name, partition)});
  }
}

void embedded_subscription::doubt(std::uint32_t partition) {
  auto& topic = topics_.at(partition >> partition_bits);
  topic.partitions.erase(static_cast<int>(partition & partition_mask));
  doubted_ = true;
}

fetched embedded_subscription::fetch(std::size_t messages_max, const call_limits& limits) {
  fetched out;
  commit_acknowledged(limits.stop);
  refresh_if_due(limits);
  if (messages_max > 0) out.deliveries = deliver(messages_max);
  out.revoked = std::exchange(revoked_, {});
  out.assigned = std::exchange(assigned_, {});
  return out;
}

// Nothing is counted as delivered before all of it is read: a failed read must not leave a gap behind.
std::vector<delivery> embedded_subscription::deliver(std::size_t messages_max) {
  struct origin {
    std::uint32_t partition;
    partition_state* state;
  };
  log_request wanted{{}, messages_max};
  std::vector<origin> origins;
  for (std::uint32_t i = 0; i < topics_.size(); ++i) {
    auto& topic = topics_[i];
    for (auto& [partition, state] : topic.partitions) {
      wanted.from.push_back({topic.info.id, topic.name, partition, state.tracker.delivered_through()});
      origins.push_back({tag_of(i, partition), &state});
    }
  }
  if (origins.empty()) return {};
  const auto first = static_cast<std::ptrdiff_t>(turn_++ % origins.size());
  std::ranges::rotate(wanted.from, wanted.from.begin() + first);
  std::ranges::rotate(origins, origins.begin() + first);
  std::vector<delivery> all;
  for (auto& one : log_.read(wanted)) {
    const auto& from = origins[one.from];
    from.state->tracker.delivered(one.position);
    all.push_back({.content = std::move(one.content),
                   .tag = {from.partition, from.state->session, static_cast<std::uint64_t>(one.position)},
                   .at = log_position::of(one.position),
                   .stored_at = one.stored_at});
  }
  return all;
}

void embedded_subscription::acknowledge(std::span<const delivery_tag> done, const call_limits& limits) {
  for (const auto& tag : done) {
    auto& topic = topics_.at(tag.partition >> partition_bits);
    const auto found = topic.partitions.find(static_cast<int>(tag.partition & partition_mask));
    if (found != topic.partitions.end() && found->second.session == tag.session)
      found->second.tracker.done(static_cast<std::int64_t>(tag.number));
  }
  commit_acknowledged(limits.stop);
}

std::vector<settled_partition> embedded_subscription::settled() const {
  std::vector<settled_partition> all;
  for (std::uint32_t i = 0; i < topics_.size(); ++i)
    for (const auto& [partition, state] : topics_[i].partitions)
      all.push_back({tag_of(i, partition), fmt::format("{}/{}", topics_[i].name, partition),
                     log_position::of(state.tracker.committed_through())});
  return all;
}

// Positions move in one transaction per topic. What fails here is tried again by the next call:
// the trackers remember.
void embedded_subscription::commit_acknowledged(const std::stop_token& stop) {
  for (std::uint32_t i = 0; i < topics_.size(); ++i) {
    auto& topic = topics_[i];
    std::map<int, std::int64_t> positions;
    for (const auto& [partition, state] : topic.partitions)
      if (state.tracker.has_news()) positions[partition] = state.tracker.done_through();
    if (positions.empty()) continue;
    try {
      auto tx = home_.file().begin(stop);
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
    commit_acknowledged({});
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
