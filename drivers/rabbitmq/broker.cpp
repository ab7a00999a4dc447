#include "settle/driver/broker.hpp"

#include "rabbitmq/inspection.hpp"
#include "rabbitmq/publisher.hpp"
#include "rabbitmq/subscription.hpp"
#include "settle/error.hpp"
#include "settle/rabbitmq.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw error(errc::invalid_argument, what);
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
}

class server_broker final : public broker {
 public:
  server_broker(address to, const options& with)
      : to_(std::move(to)), with_(with), publisher_(to_, with_), inspection_(to_, with_) {}

  publisher& publishing() override { return publisher_; }
  std::unique_ptr<subscription> subscribe(const subscribe_options& wanted) override {
    return std::make_unique<queue_subscription>(to_, with_, wanted);
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
