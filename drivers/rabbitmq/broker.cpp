#include "settle/driver/broker.hpp"

#include <algorithm>

#include "rabbitmq/inspection.hpp"
#include "rabbitmq/milestones.hpp"
#include "rabbitmq/publisher.hpp"
#include "rabbitmq/routing_key.hpp"
#include "rabbitmq/subscription.hpp"
#include "settle/error.hpp"
#include "settle/ids.hpp"
#include "settle/rabbitmq.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw error(errc::invalid_argument, what);
}

void check_existing(const options& with) {
  for (const auto& one : with.existing_queues) {
    require(!one.queue.empty() && !one.group.empty() && !one.topic.empty(),
            "rabbitmq::existing_queue has a queue, a group and a topic");
    mapper read(one.mapping);  // throws
  }
  for (const auto& one : with.existing_exchanges) {
    require(!one.topic.empty(), "rabbitmq::existing_exchange has a topic");
    if (const auto why = unusable_routing_key(one.routing_key); !why.empty())
      throw error(errc::invalid_argument, "the routing key of topic " + one.topic + ": " + why);
  }
}

void check(const options& with) {
  using namespace std::chrono_literals;
  require(with.queues >= 1 && with.queues <= 256, "rabbitmq::options.queues must be 1 to 256");
  require(with.prefetch >= 1 && with.prefetch <= 65535, "rabbitmq::options.prefetch must be 1 to 65535");
  require(with.heartbeat >= 1s && with.heartbeat <= 600s && with.heartbeat % 1s == 0s,
          "rabbitmq::options.heartbeat must be whole seconds, 1 to 600");
  require(with.connect_timeout > 0s, "rabbitmq::options.connect_timeout must be more than nothing");
  require(with.balance_every > 0s, "rabbitmq::options.balance_every must be more than nothing");
  require(with.certificate_file.empty() == with.key_file.empty(),
          "rabbitmq::options.certificate_file and key_file go together");
  check_existing(with);
}

class server_broker final : public broker {
 public:
  server_broker(address to, const options& with)
      : to_(std::move(to)), with_(with), publisher_(to_, with_), inspection_(to_, with_) {}

  publisher& publishing() override { return publisher_; }
  std::unique_ptr<subscription> subscribe(const subscribe_options& wanted) override {
    return std::make_unique<queue_subscription>(to_, with_, wanted);
  }
  void create_group(const std::string& group, const std::vector<std::string>& topics) override {
    check_subscription({.group = group, .topics = topics, .before_revoked = {}}, {with_.prefix});
    const auto within = limit::within(call_limits{}.within);
    connection on(to_, with_, "settle group", within);
    topology at(on, names{with_.prefix});
    for (const auto& topic : topics) at.declare_group(group, topic, with_.queues, within);
  }
  void remove_group(const std::string& group, const std::string& topic) override {
    const auto within = limit::within(call_limits{}.within);
    connection on(to_, with_, "settle group", within);
    topology at(on, names{with_.prefix});
    at.remove_group(group, topic, within);
  }
  std::unique_ptr<backlog> backlog_of(const std::string& group, const std::vector<std::string>& topics,
                                      const call_limits& limits) override {
    const names called{with_.prefix};
    std::vector<std::string> queues;
    for (const auto& topic : topics) {
      const auto existing = std::ranges::find_if(with_.existing_queues, [&](const existing_queue& one) {
        return one.group == group && one.topic == topic;
      });
      if (existing != with_.existing_queues.end())
        queues.push_back(existing->queue);
      else
        for (int i = 0; i < with_.queues; ++i) queues.push_back(called.queue(group, topic, i));
    }
    const auto answers_to = called.registry() + ".backlog." + with_.env.ids->next().text();
    return std::make_unique<milestones>(to_, with_, answers_to, queues, limit::of(limits));
  }
  broker_inspection* inspection() override { return &inspection_; }
  broker_traits traits() const override {
    return {.has_owners = true,
            .has_positions = false,
            .replays_from_the_beginning = false,
            .keeps_keys_together = true,
            .redelivers_for = with_.redelivers_for};
  }

 private:
  address to_;
  options with_;
  confirming_publisher publisher_;
  server_inspection inspection_;
};

}  // namespace

std::unique_ptr<broker> open(const std::string& url, const options& opts) {
  check(opts);
  return std::make_unique<server_broker>(parse_url(url), opts);
}

}  // namespace settle::inline v0::rabbitmq
