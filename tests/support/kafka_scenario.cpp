// Scenarios on Kafka. A scenario that begins anew gets topics and groups with another prefix: to delete a
// topic takes Kafka its time, and all of them go at the end.
#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "settle/driver/broker.hpp"
#include "settle/driver/broker_inspection.hpp"
#include "settle/kafka.hpp"
#include "support/kafka_fixture.hpp"
#include "support/scenario_broker.hpp"

namespace settle::test {
namespace {

// A member that was killed is missed after its session only, and until then nobody else gets its partitions.
// Scenarios go step by step and take no messages for none, so the first fetch waits for partitions.
class patient_subscription final : public subscription {
 public:
  explicit patient_subscription(std::unique_ptr<subscription> of) : of_(std::move(of)) {}

  fetched fetch(std::size_t messages_max, const call_limits& limits) override {
    auto got = of_->fetch(messages_max, limits);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!is_assigned_ && got.assigned.empty() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      got = of_->fetch(messages_max, limits);
    }
    is_assigned_ = true;
    return got;
  }
  void leave() noexcept override {
    of_->leave();
    is_assigned_ = false;
  }
  void acknowledge(std::span<const delivery_tag> done, const call_limits& limits) override {
    of_->acknowledge(done, limits);
  }
  void doubt(std::uint32_t partition) override { of_->doubt(partition); }
  std::vector<settled_partition> settled() const override { return of_->settled(); }
  wakeup& arrivals() override { return of_->arrivals(); }

 private:
  std::unique_ptr<subscription> of_;
  bool is_assigned_ = false;
};

class patient_broker final : public broker {
 public:
  explicit patient_broker(std::unique_ptr<broker> of) : of_(std::move(of)) {}

  publisher& publishing() override { return of_->publishing(); }
  std::unique_ptr<subscription> subscribe(const subscribe_options& wanted) override {
    return std::make_unique<patient_subscription>(of_->subscribe(wanted));
  }
  broker_traits traits() const override { return of_->traits(); }
  broker_inspection* inspection() override { return of_->inspection(); }

 private:
  std::unique_ptr<broker> of_;
};

class kafka_server final : public scenario_server {
 public:
  std::unique_ptr<broker> open(const environment& env) override {
    return std::make_unique<patient_broker>(kafka::open(
        kafka_url(),
        {.env = env, .partitions = 2, .session_timeout = dead_after, .prefix = corner_.prefix() + begun_}));
  }

  void reset() override {
    ++scenarios_;
    begun_ = std::to_string(scenarios_) + ".";
  }

  // As Kafka's own tool resets a group.
  void forget_acknowledgements(const std::string& consumer) override {
    corner_.reset_group(begun_ + consumer, begun_ + topic);
  }

  std::int64_t messages_stored() override {
    const auto home = open({});
    std::set<std::string, std::less<>> ids;
    home->inspection()->log()->scan([](auto, auto) {}, [&](const kept_message& one) { ids.emplace(one.id); });
    return static_cast<std::int64_t>(ids.size());
  }

  duration patience() const override { return std::chrono::seconds(5); }

 private:
  static constexpr duration dead_after = std::chrono::milliseconds(400);
  inline static const std::string topic{codec<order_placed>::topic};
  kafka_corner corner_;
  int scenarios_ = 0;
  std::string begun_ = "0.";
};

[[maybe_unused]] const bool is_set = [] {
  on_a_server() = {broker_kind::kafka,
                   [](const std::vector<std::string>&) -> std::unique_ptr<scenario_server> {
                     return std::make_unique<kafka_server>();
                   },
                   kafka_missing};
  return true;
}();

}  // namespace
}  // namespace settle::test
