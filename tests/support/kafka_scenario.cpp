// Scenarios on Kafka. A scenario that begins anew gets topics and groups with another prefix: to delete a
// topic takes Kafka its time, and all of them go at the end.
#include <set>
#include <string>

#include "settle/driver/broker.hpp"
#include "settle/driver/broker_inspection.hpp"
#include "settle/kafka.hpp"
#include "support/kafka_fixture.hpp"
#include "support/scenario_broker.hpp"

namespace settle::test {
namespace {

class kafka_server final : public scenario_server {
 public:
  std::unique_ptr<broker> open(const environment& env) override {
    return kafka::open(
        kafka_url(),
        {.env = env, .partitions = 2, .session_timeout = dead_after, .prefix = corner_.prefix() + begun_});
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

  // A member whose process was killed is missed after its session only.
  duration quiet_time() const override { return dead_after + std::chrono::milliseconds(200); }
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
