// How members of a group share its queues. The server makes whoever asked first the active consumer and says
// nothing about it, so a member that comes later would get nothing. It does not even count those who wait, so
// members see how many they are by a queue that all of them consume from. Each gives away what it has above
// its part, and who has waited longest gets it.
#include "rabbitmq/subscription.hpp"

namespace settle::inline v0::rabbitmq {

void queue_subscription::balance_if_due(const limit& within) {
  const auto now = with_.env.now();
  if (now - balanced_at_ < with_.balance_every) return;
  balanced_at_ = now;
  for (auto& topic : topics_)
    if (!topic.foreign) balance(topic, within);
  connect(within);
}

void queue_subscription::balance(topic_state& of, const limit& within) {
  const auto seen = topology_->look_at(names{with_.prefix}.members(group_, of.name), within);
  if (!seen) return;  // somebody has deleted it: everybody keeps what he has
  const auto members = std::max<std::int64_t>(seen->consumers, 1);
  if (members != std::exchange(of.members, members))
    for (auto& queue : of.queues) queue.probed = false;
  if (members == 1) return;
  const auto part = (static_cast<std::int64_t>(of.queues.size()) + members - 1) / members;
  std::vector<queue_state*> mine;
  for (auto& queue : of.queues) {
    if (queue.assigned) mine.push_back(&queue);
    // A queue without messages shows nobody who has it. One probe for each change is enough.
    if (!queue.assigned && !std::exchange(queue.probed, true)) probe(queue, within);
  }
  if (static_cast<std::int64_t>(mine.size()) <= part) return;
  if (before_revoked_) before_revoked_();
  for (std::size_t i = static_cast<std::size_t>(part); i < mine.size(); ++i) give_up(*mine[i], within);
}

// Straight to the queue, past the exchange. If it is lost, the first message shows the same.
void queue_subscription::probe(const queue_state& to, const limit& within) {
  table headers;
  headers.add(probe_header, std::string_view(group_));
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = headers.get();
  control_->publish("", to.name, properties, "", within);
  control_->flush();
}

// Closing the channel puts back what was not acknowledged, in its place. Asking again puts us behind those
// who wait.
void queue_subscription::give_up(queue_state& from, const limit& within) {
  if (from.on) from.on->close(within);
  end_session(from);
}

}  // namespace settle::inline v0::rabbitmq
