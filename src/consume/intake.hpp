// What a consumer gets from its broker, and what it owes it: the subscription, and the acknowledgement of
// what has committed.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "consume/plan.hpp"
#include "consume/unacknowledged.hpp"
#include "settle/consume.hpp"
#include "settle/driver/broker.hpp"
#include "settle/environment.hpp"

namespace settle::consume {

class intake {
 public:
  intake(broker& from, const consumer_options& options, const environment& env);

  // Before everything else, once.
  void open(const std::vector<std::string>& topics);
  bool is_open() const { return subscription_ != nullptr; }
  subscription& from() const { return *subscription_; }

  bool has_owners() const { return broker_.traits().has_owners; }
  fetched fetch(std::size_t most, const std::stop_token& cancel);

  // These have committed.
  void finished(batch done);
  bool is_time_to_acknowledge() const { return unacknowledged_.is_time(env_.now()); }
  void acknowledge(const std::stop_token& cancel = {});

 private:
  broker& broker_;
  const consumer_options& options_;
  const environment& env_;
  unacknowledged unacknowledged_;
  std::unique_ptr<subscription> subscription_;
};

}  // namespace settle::consume
