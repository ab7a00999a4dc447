#include "support/scenario_broker.hpp"

#include <utility>

namespace settle::test {

std::string name_of(broker_kind kind) {
  switch (kind) {
    case broker_kind::embedded:
      return "embedded_broker";
    case broker_kind::log_in_memory:
      return "log_in_memory";
    case broker_kind::rabbitmq:
      return "rabbitmq";
    case broker_kind::kafka:
      return "kafka";
    case broker_kind::queue_in_memory:
      break;
  }
  return "queue_in_memory";
}

scenarios_on_a_server& on_a_server() {
  static scenarios_on_a_server of_this_program;
  return of_this_program;
}

std::vector<broker_kind> every_broker() {
  if (on_a_server().make != nullptr) return {on_a_server().kind};
  return {broker_kind::embedded, broker_kind::log_in_memory, broker_kind::queue_in_memory};
}

std::string scenario_broker::missing() const {
  const auto& server = on_a_server();
  return server.make != nullptr && kind_ == server.kind ? server.missing() : std::string();
}

scenario_broker::scenario_broker(broker_kind kind, std::vector<std::string> consumers,
                                 duration session_timeout)
    : kind_(kind), consumers_(std::move(consumers)), session_timeout_(session_timeout) {
  reset();
}

void scenario_broker::reset() {
  if (on_a_server().make != nullptr && kind_ == on_a_server().kind && missing().empty()) {
    if (!server_) server_ = on_a_server().make(consumers_);
    server_->reset();
  }
  if (kind_ == broker_kind::log_in_memory) log_ = std::make_unique<memory_log_server>(session_timeout_);
  if (kind_ != broker_kind::queue_in_memory) return;
  queue_ = std::make_unique<memory_queue_server>(session_timeout_);
  for (const auto& name : consumers_) queue_->declare(name, {std::string(codec<order_placed>::topic)});
}

world_options scenario_broker::with(world_options options) {
  if (in_memory() != nullptr)
    options.broker = [this](const environment& env) { return in_memory()->open(env); };
  if (server_) {
    options.broker = [this](const environment& env) { return server_->open(env); };
    options.quiet_time = server_->quiet_time();
    options.patience = server_->patience();
  }
  return options;
}

void scenario_broker::forget_acknowledgements(order_world& in, const std::string& consumer) {
  if (in_memory() != nullptr) return in_memory()->forget_acknowledgements(consumer);
  if (server_) return server_->forget_acknowledgements(consumer);
  auto tx = in.broker_file().begin();
  tx.execute("update settle_shares set position = 0 where scope like 'group/%/' || $1", {consumer});
  tx.commit();
}

std::int64_t scenario_broker::messages_stored(order_world& in) const {
  if (in_memory() != nullptr) return static_cast<std::int64_t>(in_memory()->stored().size());
  if (server_) return server_->messages_stored();
  const auto held = in.broker_file().read().execute("select count(distinct event_id) from broker_messages");
  return held[0][0].integer();
}

bool scenario_broker::is_intact(const verify_report& report) const {
  return report.lost == 0 && report.doubled == 0 && report.ghosts == 0 &&
         (report.reordered == 0 || kind_ == broker_kind::queue_in_memory);
}

}  // namespace settle::test
