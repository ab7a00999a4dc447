#include "kafka/group_offsets.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "kafka/failure.hpp"

namespace settle::inline v0::kafka {
namespace {

class question {
 public:
  question(cluster& at, const limit& within)
      : by_(at.asking()), answers_(rd_kafka_queue_new(by_.get())), within_(within) {}

  rd_kafka_t* client() const { return by_.get(); }
  rd_kafka_queue_t* answers() const { return answers_.get(); }
  event_handle answer(const std::string& about) const {
    auto came = by_.await(*answers_, within_, about);
    if (const auto failed = rd_kafka_event_error(came.get()); failed != RD_KAFKA_RESP_ERR_NO_ERROR)
      throw refused(failed, by_.complaint(about + ": " + text_of(failed)));
    return came;
  }

 private:
  kafka::client& by_;
  queue_handle answers_;
  limit within_;
};

std::vector<std::string> names(cluster& at, std::size_t groups_max, const limit& within) {
  const question of(at, within);
  rd_kafka_ListConsumerGroups(of.client(), nullptr, of.answers());
  const auto answer = of.answer("groups");
  std::size_t count = 0;
  const auto* found = rd_kafka_ListConsumerGroups_result_valid(
      rd_kafka_event_ListConsumerGroups_result(answer.get()), &count);
  std::vector<std::string> all;
  for (const auto* one : std::span(found, count)) {
    std::string name = rd_kafka_ConsumerGroupListing_group_id(one);
    if (name.starts_with(at.settings().prefix)) all.push_back(std::move(name));
  }
  std::ranges::sort(all);
  all.resize(std::min(all.size(), groups_max));
  return all;
}

void read_members(cluster& at, std::vector<group_offsets>& of_these, const limit& within) {
  std::vector<const char*> wanted;
  for (const auto& one : of_these) wanted.push_back(one.group.c_str());
  const question of(at, within);
  rd_kafka_DescribeConsumerGroups(of.client(), wanted.data(), wanted.size(), nullptr, of.answers());
  const auto answer = of.answer("members of groups");
  std::size_t count = 0;
  const auto* found = rd_kafka_DescribeConsumerGroups_result_groups(
      rd_kafka_event_DescribeConsumerGroups_result(answer.get()), &count);
  for (const auto* one : std::span(found, count))
    for (auto& known : of_these)
      if (known.group == rd_kafka_ConsumerGroupDescription_group_id(one))
        known.members = static_cast<std::int64_t>(rd_kafka_ConsumerGroupDescription_member_count(one));
}

void read_offsets(cluster& at, group_offsets& of_this, const std::map<std::string, int>& topics,
                  const limit& within) {
  auto list = make_list();
  for (const auto& [topic, partitions] : topics)
    rd_kafka_topic_partition_list_add_range(list.get(), topic.c_str(), 0, partitions - 1);
  std::unique_ptr<rd_kafka_ListConsumerGroupOffsets_t, destroyer<rd_kafka_ListConsumerGroupOffsets_destroy>>
      wanted(rd_kafka_ListConsumerGroupOffsets_new(of_this.group.c_str(), list.get()));
  auto* asked = wanted.get();
  const question of(at, within);
  rd_kafka_ListConsumerGroupOffsets(of.client(), &asked, 1, nullptr, of.answers());
  const auto answer = of.answer("offsets of group " + of_this.group);
  std::size_t count = 0;
  const auto* found = rd_kafka_ListConsumerGroupOffsets_result_groups(
      rd_kafka_event_ListConsumerGroupOffsets_result(answer.get()), &count);
  if (count != 1) return;
  const auto* offsets = rd_kafka_group_result_partitions(found[0]);
  if (offsets == nullptr) return;
  for (const auto& one : std::span(offsets->elems, static_cast<std::size_t>(offsets->cnt)))
    if (one.offset >= 0) of_this.next[one.topic][one.partition] = one.offset;
}

void check_result(cluster& at, const rd_kafka_group_result_t* const* results, std::size_t count,
                  const std::string& about) {
  for (const auto* one : std::span(results, count))
    if (const auto* failed = rd_kafka_group_result_error(one))
      throw refused(rd_kafka_error_code(failed),
                    at.asking().complaint(about + ": " + text_of(rd_kafka_error_code(failed))));
}

void delete_offsets(cluster& at, const group_offsets& of, const std::string& topic, const limit& within) {
  const auto list = make_list();
  for (const auto& [partition, unused] : of.next.at(topic))
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition);
  std::unique_ptr<rd_kafka_DeleteConsumerGroupOffsets_t,
                  destroyer<rd_kafka_DeleteConsumerGroupOffsets_destroy>>
      wanted(rd_kafka_DeleteConsumerGroupOffsets_new(of.group.c_str(), list.get()));
  auto* asked = wanted.get();
  const question to(at, within);
  rd_kafka_DeleteConsumerGroupOffsets(to.client(), &asked, 1, nullptr, to.answers());
  const auto about = "removing group " + of.group + " from topic " + topic;
  const auto answer = to.answer(about);
  std::size_t count = 0;
  const auto* results = rd_kafka_DeleteConsumerGroupOffsets_result_groups(
      rd_kafka_event_DeleteConsumerGroupOffsets_result(answer.get()), &count);
  check_result(at, results, count, about);
}

void delete_group(cluster& at, const std::string& group, const limit& within) {
  std::unique_ptr<rd_kafka_DeleteGroup_t, destroyer<rd_kafka_DeleteGroup_destroy>> wanted(
      rd_kafka_DeleteGroup_new(group.c_str()));
  auto* asked = wanted.get();
  const question to(at, within);
  rd_kafka_DeleteGroups(to.client(), &asked, 1, nullptr, to.answers());
  const auto about = "removing group " + group;
  const auto answer = to.answer(about);
  std::size_t count = 0;
  const auto* results =
      rd_kafka_DeleteGroups_result_groups(rd_kafka_event_DeleteGroups_result(answer.get()), &count);
  check_result(at, results, count, about);
}

}  // namespace

void remove_group(cluster& at, const std::string& group, const std::string& topic, const limit& within) {
  const auto all = read_groups(at, at.topics(within), std::numeric_limits<std::size_t>::max(), within);
  const auto found = std::ranges::find(all, group, &group_offsets::group);
  if (found == all.end() || !found->next.contains(topic))
    throw error(errc::invalid_argument, "there is no group " + group + " on topic " + topic);
  if (found->members > 0)
    throw error(errc::invalid_argument, "group " + group + " has members that are alive");
  if (found->next.size() == 1)
    delete_group(at, group, within);
  else
    delete_offsets(at, *found, topic, within);
}

std::vector<group_offsets> read_groups(cluster& at, const std::map<std::string, int>& topics,
                                       std::size_t groups_max, const limit& within) {
  std::vector<group_offsets> all;
  for (auto& name : names(at, groups_max, within)) all.push_back({std::move(name), 0, {}});
  if (all.empty() || topics.empty()) return {};
  read_members(at, all, within);
  for (auto& one : all) read_offsets(at, one, topics, within);
  return all;
}

group_offsets read_group(cluster& at, const std::string& group, const std::map<std::string, int>& topics,
                         const limit& within) {
  group_offsets found{group, 0, {}};
  if (!topics.empty()) read_offsets(at, found, topics, within);
  return found;
}

}  // namespace settle::inline v0::kafka
