#include "consume/intake.hpp"

namespace settle::consume {

intake::intake(broker& from, const consumer_options& options, const environment& env)
    : broker_(from), options_(options), env_(env), unacknowledged_(options.batch_max) {}

void intake::open(const std::vector<std::string>& topics) {
  subscription_ = broker_.subscribe({options_.name, topics, [this] { acknowledge(); }});
}

fetched intake::fetch(std::size_t most, const std::stop_token& cancel) {
  return subscription_->fetch(most, {options_.broker_timeout, cancel});
}

void intake::finished(batch done) { unacknowledged_.add(done, env_.now()); }

void intake::acknowledge(const std::stop_token& cancel) {
  if (unacknowledged_.empty()) return;
  const auto tags = unacknowledged_.take();
  with_fault_points(env_, "consumer.acknowledge",
                    [&] { subscription_->acknowledge(tags, {options_.broker_timeout, cancel}); });
}

}  // namespace settle::consume
