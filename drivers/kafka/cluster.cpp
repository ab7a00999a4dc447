#include "kafka/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/pause.hpp"
#include "kafka/failure.hpp"

namespace settle::inline v0::kafka {
namespace {

constexpr std::size_t name_bytes_max = 249;

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
      if (std::string_view(one.topic).starts_with(with_.prefix) &&
          !std::string_view(one.topic).starts_with("__") && has_leaders(one))
        all.emplace(one.topic, one.partition_cnt);
    return failed;
  });
  return all;
}

int cluster::ensure(const std::string& topic, const limit& within) {
  if (const auto found = partitions(topic, within)) return *found;
  if (with_.missing_topics == missing_topic::hold)
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
      rd_kafka_NewTopic_new(topic.c_str(), with_.partitions, with_.replication, said, sizeof said));
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

extent cluster::extent_of(const std::string& topic, int partition, const limit& within) {
  auto& by = asking();
  extent found;
  by.ask(within.at_most(with_.connect_timeout), fmt::format("partition {} of topic {}", partition, topic),
         [&](int within_ms) {
           return rd_kafka_query_watermark_offsets(by.get(), topic.c_str(), partition, &found.low,
                                                   &found.high, within_ms);
         });
  return found;
}

}  // namespace settle::inline v0::kafka
