#include "kafka/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/pause.hpp"
#include "kafka/failure.hpp"

namespace settle::inline v0::kafka {
namespace {

constexpr std::size_t name_bytes_max = 249;
constexpr int clusters_choice = -1;

using metadata_handle = std::unique_ptr<const rd_kafka_metadata_t, destroyer<rd_kafka_metadata_destroy>>;
using topic_handle = std::unique_ptr<rd_kafka_topic_t, destroyer<rd_kafka_topic_destroy>>;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

bool has_leaders(const rd_kafka_metadata_topic_t& of) {
  return std::ranges::all_of(std::span(of.partitions, static_cast<std::size_t>(of.partition_cnt)),
                             [](const auto& one) { return one.leader >= 0; });
}

}  // namespace

std::string unusable_name(const std::string& name) {
  if (name.size() > name_bytes_max)
    return fmt::format("its name has {} bytes; Kafka takes {}", name.size(), name_bytes_max);
  if (!std::ranges::all_of(name, is_letter) || name == "." || name == "..")
    return "Kafka takes names of letters, digits, '.', '_' and '-'";
  return {};
}

cluster::cluster(address to, const options& with) : to_(std::move(to)), with_(with) {
  for (const auto& one : with_.existing_topics) mappers_.emplace(one.name, mapper(one.mapping));
}

std::string cluster::full_name(const std::string& short_name) const {
  const auto found = std::ranges::find(with_.existing_topics, short_name, &existing_topic::topic);
  return found == with_.existing_topics.end() ? with_.prefix + short_name : found->name;
}

std::string cluster::short_name(const std::string& full_name) const {
  const auto found = std::ranges::find(with_.existing_topics, full_name, &existing_topic::name);
  return found == with_.existing_topics.end() ? full_name.substr(with_.prefix.size()) : found->topic;
}

const mapper* cluster::mapping_of(const std::string& topic) const {
  const auto found = mappers_.find(topic);
  return found == mappers_.end() ? nullptr : &found->second;
}

client& cluster::asking() {
  const std::scoped_lock lock(mutex_);
  if (!asking_) asking_ = std::make_unique<client>(to_, with_, RD_KAFKA_CONSUMER);
  return *asking_;
}

std::optional<int> cluster::partitions(const std::string& topic, const limit& within) {
  auto& by = asking();
  const topic_handle wanted(rd_kafka_topic_new(by.get(), topic.c_str(), nullptr));
  std::optional<int> count;
  by.ask(within.at_most(with_.connect_timeout), "topic " + topic, [&](int within_ms) {
    const rd_kafka_metadata_t* found = nullptr;
    const auto failed = rd_kafka_metadata(by.get(), 0, wanted.get(), &found, within_ms);
    const metadata_handle owner(found);
    if (failed != RD_KAFKA_RESP_ERR_NO_ERROR) return failed;
    if (found->topic_cnt != 1) return RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
    const auto& one = found->topics[0];
    if (one.err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) return RD_KAFKA_RESP_ERR_NO_ERROR;
    if (one.err == RD_KAFKA_RESP_ERR_NO_ERROR) count = one.partition_cnt;
    return one.err;
  });
  return count;
}

std::map<std::string, int> cluster::topics(const limit& within) {
  auto& by = asking();
  std::map<std::string, int> all;
  by.ask(within.at_most(with_.connect_timeout), "topics", [&](int within_ms) {
    const rd_kafka_metadata_t* found = nullptr;
    const auto failed = rd_kafka_metadata(by.get(), 1, nullptr, &found, within_ms);
    const metadata_handle owner(found);
    if (failed != RD_KAFKA_RESP_ERR_NO_ERROR) return failed;
    for (const auto& one : std::span(found->topics, static_cast<std::size_t>(found->topic_cnt)))
      if (has_leaders(one) &&
          (is_existing(one.topic) || (std::string_view(one.topic).starts_with(with_.prefix) &&
                                      !std::string_view(one.topic).starts_with("__"))))
        all.emplace(one.topic, one.partition_cnt);
    return failed;
  });
  return all;
}

int cluster::ensure(const std::string& topic, const limit& within) {
  if (const auto found = partitions(topic, within)) return *found;
  if (with_.missing_topics == missing_topic::hold || is_existing(topic))
    throw refused(
        RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
        fmt::format("{} has no topic {}: its messages wait until somebody creates it", to_.name(), topic));
  create(topic, within);
  while (true) {
    if (const auto found = partitions(topic, within)) return *found;
    if (within.is_over())
      throw refused(RD_KAFKA_RESP_ERR__TIMED_OUT,
                    fmt::format("{} has created topic {} and does not show it yet", to_.name(), topic));
    pause(std::chrono::milliseconds(20), within.stop);
  }
}

void cluster::create(const std::string& topic, const limit& within) {
  auto& by = asking();
  char said[256] = "";
  std::unique_ptr<rd_kafka_NewTopic_t, destroyer<rd_kafka_NewTopic_destroy>> wanted(
      rd_kafka_NewTopic_new(topic.c_str(), with_.partitions,
                            with_.replication == 0 ? clusters_choice : with_.replication, said, sizeof said));
  if (!wanted) throw refused(RD_KAFKA_RESP_ERR__INVALID_ARG, fmt::format("topic {}: {}", topic, said));
  auto* made = wanted.get();
  const queue_handle answers(rd_kafka_queue_new(by.get()));
  rd_kafka_CreateTopics(by.get(), &made, 1, nullptr, answers.get());
  const auto about = "creating topic " + topic;
  const auto answer = by.await(*answers, within.at_most(2 * with_.connect_timeout), about);
  auto code = rd_kafka_event_error(answer.get());
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    std::size_t count = 0;
    const auto* results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(answer.get()), &count);
    if (count == 1) code = rd_kafka_topic_result_error(results[0]);
  }
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR && code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
    throw refused(code, by.complaint(fmt::format("{}: {}", about, text_of(code))));
}

// A client that was once told that there is no such topic believes it for long (2.0.2), so somebody new is
// asked then.
void cluster::ask_in_turn(const limit& within, const std::string& about,
                          const std::function<rd_kafka_resp_err_t(client&, int)>& question) {
  constexpr duration patience = std::chrono::milliseconds(500);
  auto& known = asking();
  try {
    return known.ask(within.at_most(patience), about,
                     [&](int within_ms) { return question(known, within_ms); });
  } catch (const refused&) {
    if (within.is_over()) throw;
  }
  client fresh(to_, with_, RD_KAFKA_CONSUMER);
  fresh.ask(within.at_most(with_.connect_timeout), about,
            [&](int within_ms) { return question(fresh, within_ms); });
}

// `which`: RD_KAFKA_OFFSET_BEGINNING or RD_KAFKA_OFFSET_END.
partition_list cluster::ends_of(const std::string& topic, int partitions, std::int64_t which,
                                const limit& within) {
  partition_list list;
  ask_in_turn(within, "offsets of topic " + topic, [&](client& by, int within_ms) {
    list = make_list(static_cast<std::size_t>(partitions));
    for (int i = 0; i < partitions; ++i)
      rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), i)->offset = which;
    const auto failed = rd_kafka_offsets_for_times(by.get(), list.get(), within_ms);
    return failed != RD_KAFKA_RESP_ERR_NO_ERROR ? failed : first_error(*list);
  });
  return list;
}

std::vector<extent> cluster::extents_of(const std::string& topic, int partitions, const limit& within) {
  std::vector<extent> all(static_cast<std::size_t>(partitions));
  if (partitions == 0) return all;
  const auto low = ends_of(topic, partitions, RD_KAFKA_OFFSET_BEGINNING, within);
  const auto high = ends_of(topic, partitions, RD_KAFKA_OFFSET_END, within);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {low->elems[i].offset, high->elems[i].offset};
  return all;
}

extent cluster::extent_of(const std::string& topic, int partition, const limit& within) {
  extent found;
  ask_in_turn(within, fmt::format("partition {} of topic {}", partition, topic),
              [&](client& by, int within_ms) {
                return rd_kafka_query_watermark_offsets(by.get(), topic.c_str(), partition, &found.low,
                                                        &found.high, within_ms);
              });
  return found;
}

}  // namespace settle::inline v0::kafka
