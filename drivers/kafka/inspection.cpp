#include "kafka/inspection.hpp"

#include <algorithm>
#include <tuple>

#include "base/pause.hpp"
#include "kafka/log_place.hpp"
#include "kafka/record.hpp"

namespace settle::inline v0::kafka {
namespace {

constexpr duration answer_within = std::chrono::seconds(10);
constexpr duration scan_within = std::chrono::hours(1);

// Nobody tells whoever has joined no group, so it looks now and then.
class looking_now_and_then final : public wakeup {
  void wait(duration at_most, std::stop_token stop) override {
    constexpr duration pause_between = std::chrono::milliseconds(200);
    pause(std::min(at_most, pause_between), stop);
  }
};

std::int64_t time_of(const rd_kafka_message_t& of) {
  return std::max<std::int64_t>(0, rd_kafka_message_timestamp(&of, nullptr));
}

}  // namespace

std::unique_ptr<wakeup> cluster_inspection::arrivals() { return std::make_unique<looking_now_and_then>(); }

std::vector<inspected_topic> cluster_inspection::topics(std::size_t topics_max) {
  const auto within = limit::within(answer_within);
  std::vector<inspected_topic> all;
  for (const auto& [topic, partitions] : at_.topics(within)) {
    if (all.size() >= topics_max) break;
    std::int64_t kept = 0;
    for (const auto& one : at_.extents_of(topic, partitions, within)) kept += one.high - one.low;
    all.push_back({.name = at_.short_name(topic), .partitions = partitions, .messages = kept});
  }
  return all;
}

std::vector<inspected_group> cluster_inspection::groups(const inspect_groups& wanted) {
  const std::scoped_lock lock(mutex_);
  const auto within = limit::within(answer_within);
  std::vector<inspected_group> all;
  const auto topics = at_.topics(within);
  std::map<std::string, std::vector<extent>> kept;  // of topics that somebody listens to
  for (const auto& one : read_groups(at_, topics, wanted.groups_max, within))
    for (const auto& [topic, next] : one.next) {
      auto& extents = kept[topic];
      if (extents.empty()) extents = at_.extents_of(topic, topics.at(topic), within);
      inspected_group found{.group = short_group(one.group),
                            .topic = at_.short_name(topic),
                            .members_alive = one.members,
                            .lag = 0,
                            .oldest = std::nullopt,
                            .newest = std::nullopt};
      const auto waiting = add_lag(found, next, extents);
      if (wanted.with_times) add_times(found, topic, waiting, within);
      all.push_back(std::move(found));
    }
  all.resize(std::min(all.size(), wanted.groups_max));
  return all;
}

// Where the group goes on, in partitions that have something for it.
cluster_inspection::starts cluster_inspection::add_lag(inspected_group& to, const starts& next,
                                                       const std::vector<extent>& extents) {
  starts waiting;
  for (const auto& [partition, offset] : next) {
    const auto& kept = extents.at(static_cast<std::size_t>(partition));
    const auto from = std::max(offset, kept.low);
    const auto lag = std::max<std::int64_t>(0, kept.high - from);
    to.partitions.push_back({partition, lag});
    *to.lag += lag;
    if (lag > 0) waiting[partition] = from;
  }
  return waiting;
}

void cluster_inspection::add_times(inspected_group& to, const std::string& topic, const starts& waiting,
                                   const limit& within) {
  const auto note = [&](const rd_kafka_message_t& one) {
    const timestamp at{std::chrono::milliseconds(time_of(one))};
    to.oldest = std::min(to.oldest.value_or(at), at);
    to.newest = std::max(to.newest.value_or(at), at);
  };
  reader_.read(topic, waiting, 1, within, note);
  starts last;
  for (const auto& [partition, unused] : waiting)
    last[partition] = at_.extent_of(topic, partition, within).high - 1;
  reader_.read(topic, last, 1, within, note);
}

std::vector<placed_message> cluster_inspection::read_all(const std::string& topic, const starts& from,
                                                         std::size_t most, const limit& within) {
  std::vector<placed_message> all;
  reader_.read(topic, from, most, within, [&](const rd_kafka_message_t& one) {
    all.push_back({position_of({time_of(one), one.partition, one.offset}),
                   content_of(one, at_.short_name(topic), at_.mapping_of(topic))});
  });
  std::ranges::sort(all, {}, &placed_message::place);
  return all;
}

cluster_inspection::starts cluster_inspection::since(const std::string& topic, const log_position& after,
                                                     const limit& within) {
  starts from;
  const auto partitions = at_.partitions(topic, within).value_or(0);
  if (after.empty() || partitions == 0) {
    const auto all = at_.extents_of(topic, partitions, within);
    for (int i = 0; i < partitions; ++i) from[i] = all[static_cast<std::size_t>(i)].low;
    return from;
  }
  const auto place = place_of(after);
  auto list = make_list(static_cast<std::size_t>(partitions));
  for (int i = 0; i < partitions; ++i)
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), i)->offset = place.time_ms;
  auto& by = at_.asking();
  by.ask(within, "offsets of topic " + topic,
         [&](int within_ms) { return rd_kafka_offsets_for_times(by.get(), list.get(), within_ms); });
  for (int i = 0; i < partitions; ++i)
    if (list->elems[i].offset >= 0) from[list->elems[i].partition] = list->elems[i].offset;
  return from;
}

std::vector<placed_message> cluster_inspection::read(const std::string& topic, const log_position& after,
                                                     const read_limits& limits) {
  const std::scoped_lock lock(mutex_);
  const auto within = limit::within(answer_within);
  const auto full = at_.full_name(topic);
  if (!at_.partitions(full, within)) return {};
  auto from = since(full, after, within);
  if (!after.empty())  // of its own partition, everything up to it is behind us
    if (const auto place = place_of(after); from.contains(place.partition))
      from[place.partition] = std::max(from[place.partition], place.offset + 1);
  auto all = read_all(full, from, limits.messages_max, within);
  std::erase_if(all, [&](const auto& one) { return one.place <= after; });
  std::size_t bytes = 0, count = 0;
  while (count < all.size() && count < limits.messages_max) {
    bytes += all[count].content.payload.size();
    if (count > 0 && bytes > limits.bytes_max) break;
    ++count;
  }
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
  return all;
}

log_position cluster_inspection::before_last(const std::string& topic, std::size_t messages) {
  const std::scoped_lock lock(mutex_);
  const auto within = limit::within(answer_within);
  const auto full = at_.full_name(topic);
  starts from;
  const auto extents = at_.extents_of(full, at_.partitions(full, within).value_or(0), within);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const auto& kept = extents[i];
    from[static_cast<int>(i)] = std::max(kept.low, kept.high - static_cast<std::int64_t>(messages) - 1);
  }
  const auto all = read_all(full, from, messages + 1, within);
  return all.size() <= messages ? log_position() : all[all.size() - messages - 1].place;
}

void cluster_inspection::scan(
    const std::function<void(std::string_view group, std::string_view topic)>& group,
    const std::function<void(const kept_message&)>& kept) {
  const std::scoped_lock lock(mutex_);
  const auto within = limit::within(scan_within);
  const auto topics = at_.topics(within);
  const auto groups = read_groups(at_, topics, std::numeric_limits<std::size_t>::max(), within);
  std::map<std::string, std::vector<std::pair<std::string, starts>>> listening;  // by topic
  for (const auto& one : groups)
    for (const auto& [topic, next] : one.next) {
      group(short_group(one.group), at_.short_name(topic));
      listening[topic].emplace_back(short_group(one.group), next);
    }
  for (const auto& [topic, partitions] : topics) {
    const auto name = at_.short_name(topic);
    const auto take = [&](const rd_kafka_message_t& one) {
      std::vector<std::string_view> waiting;
      for (const auto& [who, next] : listening[topic])
        if (const auto at = next.find(one.partition); at == next.end() || at->second <= one.offset)
          waiting.emplace_back(who);
      kept({content_of(one, name, at_.mapping_of(topic)).id, name, waiting});
    };
    reader_.read(topic, since(topic, {}, within), std::numeric_limits<std::size_t>::max(), within, take);
  }
}

}  // namespace settle::inline v0::kafka
