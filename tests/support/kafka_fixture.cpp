#include "support/kafka_fixture.hpp"

#include <librdkafka/rdkafka.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "kafka/cluster.hpp"
#include "kafka/failure.hpp"
#include "kafka/group_offsets.hpp"

namespace settle::test {
namespace {

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string all;
  char piece[512];
  for (std::size_t got; (got = std::fread(piece, 1, sizeof piece, pipe.get())) > 0;) all.append(piece, got);
  return all;
}

std::string variable(const std::string& name) {
  if (const char* set = std::getenv(name.c_str())) return set;
  static const auto lines = output_of("'" SETTLE_SOURCE "/tools/servers' env");
  const auto start = "export " + name + "='";
  const auto at = lines.find(start);
  if (at == std::string::npos) return {};
  const auto from = at + start.size();
  return lines.substr(from, lines.find('\'', from) - from);
}

limit soon() { return limit::within(std::chrono::seconds(30)); }

// One question of an administrator, and that it was answered without a failure.
class errand {
 public:
  errand(const std::string& url, const std::string& prefix) : at(kafka::parse_url(url), {.prefix = prefix}) {}

  mutable kafka::cluster at;
  kafka::queue_handle answers{rd_kafka_queue_new(at.asking().get())};
  rd_kafka_t* by() const { return at.asking().get(); }

  kafka::event_handle done(const char* what) {
    auto answer = at.asking().await(*answers, soon(), what);
    check(rd_kafka_event_error(answer.get()), what);
    return answer;
  }
  static void check(rd_kafka_resp_err_t code, const char* what) {
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(what + (": " + kafka::text_of(code)));
  }
};

}  // namespace

std::string kafka_url() { return variable("SETTLE_TEST_KAFKA"); }

std::string kafka_secure_url() { return variable("SETTLE_TEST_KAFKA_SECURE"); }
std::string kafka_ca_file() { return variable("SETTLE_TEST_KAFKA_CA"); }

std::string kafka_missing() {
  if (!kafka_url().empty()) return {};
  const std::string why = "kafka is not running; `tools/servers up kafka` starts it";
  const char* ci = std::getenv("CI");
  if (ci != nullptr && std::string(ci) == "true") throw std::runtime_error(why + ", and CI=true");
  return why;
}

int kafka_port(const std::string& url) { return std::stoi(url.substr(url.rfind(':') + 1)); }

kafka_corner::kafka_corner(std::string url) : url_(std::move(url)) {
  static std::atomic<int> made = 0;
  prefix_ = "test_" + std::to_string(::getpid()) + "_" + std::to_string(++made) + ".";
}

kafka_corner::~kafka_corner() {
  try {
    clear();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
}

void kafka_corner::create_topic(const std::string& name, int partitions,
                                const std::vector<std::pair<std::string, std::string>>& settings) const {
  errand of(url_, prefix_);
  char said[256] = "";
  auto* wanted = rd_kafka_NewTopic_new((prefix_ + name).c_str(), partitions, -1, said, sizeof said);
  for (const auto& [key, value] : settings) rd_kafka_NewTopic_set_config(wanted, key.c_str(), value.c_str());
  rd_kafka_CreateTopics(of.by(), &wanted, 1, nullptr, of.answers.get());
  const auto answer = of.done("creating a topic");
  rd_kafka_NewTopic_destroy(wanted);
  std::size_t count = 0;
  const auto* results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(answer.get()), &count);
  for (std::size_t i = 0; i < count; ++i)
    errand::check(rd_kafka_topic_result_error(results[i]), "creating a topic");
}

void kafka_corner::delete_topic(const std::string& name) const {
  errand of(url_, prefix_);
  auto* wanted = rd_kafka_DeleteTopic_new((prefix_ + name).c_str());
  rd_kafka_DeleteTopics(of.by(), &wanted, 1, nullptr, of.answers.get());
  of.done("deleting a topic");
  rd_kafka_DeleteTopic_destroy(wanted);
}

void kafka_corner::delete_records(const std::string& topic, int partition, std::int64_t before) const {
  errand of(url_, prefix_);
  const auto list = kafka::make_list();
  rd_kafka_topic_partition_list_add(list.get(), (prefix_ + topic).c_str(), partition)->offset = before;
  auto* wanted = rd_kafka_DeleteRecords_new(list.get());
  rd_kafka_DeleteRecords(of.by(), &wanted, 1, nullptr, of.answers.get());
  of.done("deleting records");
  rd_kafka_DeleteRecords_destroy(wanted);
}

void kafka_corner::delete_group(const std::string& name) const {
  errand of(url_, prefix_);
  auto* wanted = rd_kafka_DeleteGroup_new((prefix_ + name).c_str());
  rd_kafka_DeleteGroups(of.by(), &wanted, 1, nullptr, of.answers.get());
  of.done("deleting a group");
  rd_kafka_DeleteGroup_destroy(wanted);
}

void kafka_corner::reset_group(const std::string& name, const std::string& topic) const {
  errand of(url_, prefix_);
  const auto full = prefix_ + topic;
  for (int i = 0, count = of.at.partitions(full, soon()).value(); i < count; ++i)
    set_offset(name, topic, i, of.at.extent_of(full, i, soon()).low);
}

// As Kafka's own tool does it: without the group's own name for the log.
void kafka_corner::set_offset(const std::string& group, const std::string& topic, int partition,
                              std::int64_t next) const {
  errand of(url_, prefix_);
  const auto list = kafka::make_list();
  rd_kafka_topic_partition_list_add(list.get(), (prefix_ + topic).c_str(), partition)->offset = next;
  auto* wanted = rd_kafka_AlterConsumerGroupOffsets_new((prefix_ + group).c_str(), list.get());
  rd_kafka_AlterConsumerGroupOffsets(of.by(), &wanted, 1, nullptr, of.answers.get());
  const auto answer = of.done("setting an offset");
  rd_kafka_AlterConsumerGroupOffsets_destroy(wanted);
  std::size_t count = 0;
  const auto* results = rd_kafka_AlterConsumerGroupOffsets_result_groups(
      rd_kafka_event_AlterConsumerGroupOffsets_result(answer.get()), &count);
  if (const auto* failed = rd_kafka_group_result_error(results[0]))
    errand::check(rd_kafka_error_code(failed), "setting an offset");
  errand::check(rd_kafka_group_result_partitions(results[0])->elems[0].err, "setting an offset");
}

std::map<int, kafka_corner::standing> kafka_corner::standing_of(const std::string& group,
                                                                const std::string& topic) const {
  errand of(url_, prefix_);
  std::map<int, standing> all;
  for (const auto& one : kafka::read_groups(of.at, of.at.topics(soon()), 1000, soon())) {
    const auto found = one.next.find(prefix_ + topic);
    if (one.group != prefix_ + group || found == one.next.end()) continue;
    for (const auto& [partition, next] : found->second)
      all[partition] = {next, of.at.extent_of(prefix_ + topic, partition, soon()).high - next};
  }
  return all;
}

bool kafka_corner::has_topic(const std::string& name) const {
  return errand(url_, prefix_).at.partitions(prefix_ + name, soon()).has_value();
}

void kafka_corner::produce(const std::string& topic, const std::string& key, const std::string& value,
                           const std::vector<std::pair<std::string, std::string>>& headers) const {
  const kafka::client by(kafka::parse_url(url_), {}, RD_KAFKA_PRODUCER);
  auto* with = rd_kafka_headers_new(headers.size());
  for (const auto& [name, text] : headers)
    rd_kafka_header_add(with, name.c_str(), -1, text.data(), static_cast<ssize_t>(text.size()));
  const auto full = prefix_ + topic;
  errand::check(
      rd_kafka_producev(by.get(), RD_KAFKA_V_TOPIC(full.c_str()),
                        RD_KAFKA_V_KEY(key.empty() ? nullptr : key.data(), key.size()),
                        RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()),
                        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADERS(with), RD_KAFKA_V_END),
      "producing");
  errand::check(rd_kafka_flush(by.get(), 30'000), "producing");
}

void kafka_corner::forbid_writing(const std::string& topic) const {
  errand of(url_, prefix_);
  char said[256] = "";
  auto* rule = rd_kafka_AclBinding_new(
      RD_KAFKA_RESOURCE_TOPIC, (prefix_ + topic).c_str(), RD_KAFKA_RESOURCE_PATTERN_LITERAL, "User:settle",
      "*", RD_KAFKA_ACL_OPERATION_WRITE, RD_KAFKA_ACL_PERMISSION_TYPE_DENY, said, sizeof said);
  rd_kafka_CreateAcls(of.by(), &rule, 1, nullptr, of.answers.get());
  of.done("forbidding to write");
  rd_kafka_AclBinding_destroy(rule);
}

void kafka_corner::allow_writing(const std::string& topic) const {
  errand of(url_, prefix_);
  char said[256] = "";
  auto* rules = rd_kafka_AclBindingFilter_new(
      RD_KAFKA_RESOURCE_TOPIC, (prefix_ + topic).c_str(), RD_KAFKA_RESOURCE_PATTERN_LITERAL, nullptr, nullptr,
      RD_KAFKA_ACL_OPERATION_ANY, RD_KAFKA_ACL_PERMISSION_TYPE_ANY, said, sizeof said);
  rd_kafka_DeleteAcls(of.by(), &rules, 1, nullptr, of.answers.get());
  of.done("allowing to write");
  rd_kafka_AclBinding_destroy(rules);
}

namespace {

// What the servers say of a topic's partitions.
template <class Look>
void look_at(const errand& of, const std::string& topic, Look&& look) {
  const std::unique_ptr<rd_kafka_topic_t, kafka::destroyer<rd_kafka_topic_destroy>> wanted(
      rd_kafka_topic_new(of.by(), topic.c_str(), nullptr));
  of.at.asking().ask(soon(), "topic " + topic, [&](int within_ms) {
    const rd_kafka_metadata_t* found = nullptr;
    const auto failed = rd_kafka_metadata(of.by(), 0, wanted.get(), &found, within_ms);
    if (failed != RD_KAFKA_RESP_ERR_NO_ERROR) return failed;
    const std::unique_ptr<const rd_kafka_metadata_t, kafka::destroyer<rd_kafka_metadata_destroy>> owner(
        found);
    for (int i = 0; i < found->topics[0].partition_cnt; ++i) look(found->topics[0].partitions[i]);
    return failed;
  });
}

}  // namespace

int kafka_corner::leader_of(const std::string& topic, int partition) const {
  int leader = -1;
  look_at(errand(url_, prefix_), prefix_ + topic, [&](const auto& one) {
    if (one.id == partition) leader = one.leader;
  });
  return leader;
}

bool kafka_corner::is_in_sync(const std::string& topic) const {
  bool all = true;
  look_at(errand(url_, prefix_), prefix_ + topic,
          [&](const auto& one) { all = all && one.isr_cnt == one.replica_cnt; });
  return all;
}

int kafka_corner::coordinator_of(const std::string& group) const {
  errand of(url_, prefix_);
  const auto full = prefix_ + group;
  const char* name = full.c_str();
  rd_kafka_DescribeConsumerGroups(of.by(), &name, 1, nullptr, of.answers.get());
  const auto answer = of.done("asking for a coordinator");
  std::size_t count = 0;
  const auto* found = rd_kafka_DescribeConsumerGroups_result_groups(
      rd_kafka_event_DescribeConsumerGroups_result(answer.get()), &count);
  const auto* node = rd_kafka_ConsumerGroupDescription_coordinator(found[0]);
  if (node == nullptr) throw std::runtime_error("the group has no coordinator");
  return rd_kafka_Node_id(node);
}

void kafka_corner::clear() const {
  errand of(url_, prefix_);
  const auto topics = of.at.topics(soon());
  for (const auto& one : kafka::read_groups(of.at, topics, 1000, soon()))
    delete_group(one.group.substr(prefix_.size()));
  for (const auto& [name, unused] : topics) delete_topic(name.substr(prefix_.size()));
}

}  // namespace settle::test
