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

  kafka::cluster at;
  kafka::queue_handle answers{rd_kafka_queue_new(at.asking().get())};
  rd_kafka_t* by() { return at.asking().get(); }

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

void kafka_corner::clear() const {
  errand of(url_, prefix_);
  const auto topics = of.at.topics(soon());
  for (const auto& one : kafka::read_groups(of.at, topics, 1000, soon()))
    delete_group(one.group.substr(prefix_.size()));
  for (const auto& [name, unused] : topics) delete_topic(name.substr(prefix_.size()));
}

}  // namespace settle::test
