// Scenarios on RabbitMQ. What was published is counted by a group that acknowledges nothing.
#include <algorithm>
#include <thread>

#include "rabbitmq/topology.hpp"
#include "settle/driver/broker.hpp"
#include "settle/rabbitmq.hpp"
#include "support/rabbitmq_fixture.hpp"
#include "support/scenario_broker.hpp"

namespace settle::test {
namespace {

constexpr auto auditor = "auditor";
constexpr int queues = 2;

class rabbitmq_server final : public scenario_server {
 public:
  explicit rabbitmq_server(std::vector<std::string> consumers) : consumers_(std::move(consumers)) {}

  std::unique_ptr<broker> open(const environment& env) override {
    return rabbitmq::open(
        rabbitmq_url(),
        {.env = env, .queues = queues, .prefix = corner_->prefix(), .redelivers_for = std::chrono::hours(1)});
  }

  // Queues take their time to be made, so those that are there are emptied. Whoever used them has gone.
  void reset() override {
    if (corner_) return corner_->purge();
    corner_ = std::make_unique<scratch_broker>();
    auto home = open({});
    for (const auto& one : consumers_) home->subscribe({one, {topic}})->leave();
    home->subscribe({auditor, {topic}})->leave();
  }

  // Everything comes again, as if it had not been acknowledged.
  void forget_acknowledgements(const std::string&) override {
    auto home = open({});
    const auto count = static_cast<std::size_t>(messages_stored());
    auto reading = home->subscribe({auditor, {topic}});
    std::vector<message> all;
    while (all.size() < count) {
      for (auto& one : reading->fetch(count).deliveries) all.push_back(std::move(one.content));
      reading->arrivals().wait(std::chrono::milliseconds(10), {});
    }
    reading->leave();
    for (const auto& result : home->publishing().publish(all))
      if (result.status != publish_status::confirmed) throw std::runtime_error(result.reason);
  }

  std::int64_t messages_stored() override {
    const auto within = rabbitmq::limit::within(std::chrono::seconds(30));
    rabbitmq::connection on(rabbitmq::parse_url(rabbitmq_url()), {}, "settle test", within);
    rabbitmq::topology at(on, {corner_->prefix()});
    std::int64_t all = 0;
    for (int i = 0; i < queues; ++i)
      all += at.look_at(rabbitmq::names{corner_->prefix()}.queue(auditor, topic, i), within)->ready;
    return all;
  }

 private:
  inline static const std::string topic{codec<order_placed>::topic};
  std::vector<std::string> consumers_;
  std::unique_ptr<scratch_broker> corner_;
};

[[maybe_unused]] const bool is_set = [] {
  on_a_server() = {broker_kind::rabbitmq,
                   [](const std::vector<std::string>& consumers) -> std::unique_ptr<scenario_server> {
                     return std::make_unique<rabbitmq_server>(consumers);
                   },
                   rabbitmq_missing};
  return true;
}();

}  // namespace
}  // namespace settle::test
