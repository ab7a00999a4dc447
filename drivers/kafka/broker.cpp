#include "settle/driver/broker.hpp"

#include "kafka/backlog.hpp"
#include "kafka/group_offsets.hpp"
#include "kafka/inspection.hpp"
#include "kafka/publisher.hpp"
#include "kafka/subscription.hpp"
#include "settle/error.hpp"
#include "settle/kafka.hpp"

namespace settle::inline v0::kafka {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw error(errc::invalid_argument, what);
}

void check(const options& with) {
  using namespace std::chrono_literals;
  require(with.connect_timeout > 0s, "kafka::options.connect_timeout must be more than nothing");
  require(with.partitions >= 1 && with.partitions <= 1024, "kafka::options.partitions must be 1 to 1024");
  require(with.replication >= 0 && with.replication <= 100, "kafka::options.replication must be 0 to 100");
  require(with.session_timeout >= 100ms && with.session_timeout <= 1h,
          "kafka::options.session_timeout must be 100 ms to 1 h");
  require(with.silence_max >= 100ms && with.silence_max <= 24h,
          "kafka::options.silence_max must be 100 ms to 24 h");
  require(with.message_bytes_max >= 1000 && with.message_bytes_max <= 1'000'000'000,
          "kafka::options.message_bytes_max must be 1,000 to 1,000,000,000");
  require(with.read_ahead_bytes >= 1000 && with.read_ahead_bytes <= 1'000'000'000,
          "kafka::options.read_ahead_bytes must be 1,000 to 1,000,000,000");
  require(with.certificate_file.empty() == with.key_file.empty(),
          "kafka::options.certificate_file and key_file go together");
  require(with.sasl_mechanism == "PLAIN" || with.sasl_mechanism == "SCRAM-SHA-256" ||
              with.sasl_mechanism == "SCRAM-SHA-512",
          "kafka::options.sasl_mechanism must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512");
  for (const auto& [name, unused] : with.security)
    require(name.starts_with("ssl.") || name.starts_with("sasl."),
            "kafka::options.security has settings that begin with ssl. or sasl. only");
  for (const auto& one : with.existing_topics)
    require(!one.topic.empty() && unusable_name(one.name).empty() && !one.name.empty(),
            "kafka::options.existing_topics: each has a topic, and a name that Kafka takes");
  require(with.prefix.empty() || unusable_name(with.prefix).empty(),
          "kafka::options.prefix must have letters, digits, '.', '_' and '-' only");
}

class cluster_broker final : public broker {
 public:
  cluster_broker(address to, const options& with)
      : at_(std::move(to), with), publisher_(at_), inspection_(at_) {}

  publisher& publishing() override { return publisher_; }
  std::unique_ptr<subscription> subscribe(const subscribe_options& wanted) override {
    return std::make_unique<group_subscription>(at_, wanted);
  }
  std::unique_ptr<backlog> backlog_of(const std::string& group, const std::vector<std::string>& topics,
                                      const call_limits& limits) override {
    std::vector<std::string> full;
    for (const auto& one : topics) full.push_back(at_.full_name(one));
    return std::make_unique<group_backlog>(at_, at_.group_name(group), full, limit::of(limits));
  }
  void remove_group(const std::string& group, const std::string& topic) override {
    kafka::remove_group(at_, at_.group_name(group), at_.full_name(topic),
                        limit::within(call_limits{}.within));
  }
  broker_inspection* inspection() override { return &inspection_; }
  broker_traits traits() const override { return {}; }

 private:
  cluster at_;
  log_publisher publisher_;
  cluster_inspection inspection_;
};

}  // namespace

message_mapping debezium_outbox() {
  return {.id = {"{header:id}"},
          .source = {"{property:topic}"},
          .type = {"{header:type}", "{header:eventType}"},
          .key = {"{property:key}"},
          .subject = {},
          .time = {"{property:timestamp}"}};
}

std::unique_ptr<broker> open(const std::string& url, const options& opts) {
  check(opts);
  return std::make_unique<cluster_broker>(parse_url(url), opts);
}

}  // namespace settle::inline v0::kafka
