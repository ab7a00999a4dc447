#include "rabbitmq/subscription.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/pause.hpp"
#include "base/text.hpp"
#include "rabbitmq/milestones.hpp"
#include "rabbitmq/seams.hpp"
#include "settle/event.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

// A tag's partition number holds the topic's index in the subscription and the queue's within the group.
constexpr std::uint32_t queue_bits = 16;
constexpr duration farewell_within = std::chrono::seconds(2);

}  // namespace

void check_subscription(const subscribe_options& wanted, const names& called) {
  check_name(wanted.group, {"group", event_limits::name_bytes_max});
  if (wanted.topics.empty()) throw error(errc::invalid_argument, "a subscription needs at least one topic");
  std::set<std::string_view> seen;
  for (const auto& topic : wanted.topics) {
    check_name(topic, {"topic", event_limits::name_bytes_max});
    if (!seen.insert(topic).second)
      throw error(errc::invalid_argument, fmt::format("topic {} is listed twice in one subscription", topic));
    if (const auto why = unusable_topic(called, topic); !why.empty())
      throw error(errc::invalid_name, fmt::format("topic {}: {}", topic, why));
  }
}

queue_subscription::queue_subscription(const address& to, const options& with,
                                       const subscribe_options& wanted)
    : to_(to), with_(with), group_(wanted.group), before_revoked_(wanted.before_revoked) {
  check_subscription(wanted, {with_.prefix});
  topics_.reserve(wanted.topics.size());
  for (const auto& topic : wanted.topics) add_topic(topic);
  with_fault_points(with_.env, "broker.subscribe", [&] { connect(limit::within(call_limits{}.within)); });
}

queue_subscription::~queue_subscription() { disconnect(); }

void queue_subscription::add_topic(const std::string& name) {
  const auto number = static_cast<std::uint32_t>(topics_.size());
  auto& topic = topics_.emplace_back(topic_state{.name = name});
  const auto existing = std::ranges::find_if(with_.existing_queues, [&](const existing_queue& one) {
    return one.group == group_ && one.topic == name;
  });
  if (existing != with_.existing_queues.end()) topic.foreign.emplace(existing->mapping);
  const auto count = topic.foreign ? 1U : static_cast<std::uint32_t>(with_.queues);
  topic.queues.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    auto& queue = topic.queues.emplace_back();
    queue.name =
        topic.foreign ? existing->queue : names{with_.prefix}.queue(group_, name, static_cast<int>(i));
    queue.topic = &topic.name;
    queue.partition = number << queue_bits | i;
    queue.foreign = topic.foreign ? &*topic.foreign : nullptr;
    queues_.push_back(&queue);
  }
}

// What a group needs is made; what others have made must be there.
void queue_subscription::join(topology& at, const limit& within) {
  for (auto& topic : topics_) {
    if (!topic.foreign)
      at.declare_group(group_, topic.name, with_.queues, within);
    else if (!at.look_at(topic.queues[0].name, within))
      throw error(errc::destination_unavailable,
                  fmt::format("there is no queue {}, which group {} was told to read; it is made by somebody "
                              "else",
                              topic.queues[0].name, group_));
  }
}

// Whatever has no session gets one. Repeats what an earlier call could not finish.
void queue_subscription::connect(const limit& within) {
  if (!on_) {
    auto made = std::make_unique<connection>(to_, with_, "settle consumer " + group_, within);
    auto layout = std::make_unique<topology>(*made, names{with_.prefix});
    join(*layout, within);
    on_ = std::move(made);
    topology_ = std::move(layout);
    balanced_at_ = with_.env.now();
  }
  if (!control_ || control_->ended()) {
    control_.reset();
    acknowledging_ = 0;
    auto control = std::make_unique<channel>(*on_, within);
    for (const auto& topic : topics_) {
      if (topic.foreign) continue;
      const auto members = names{with_.prefix}.members(group_, topic.name);
      amqp_basic_consume_t what{};
      what.queue = as_bytes(members);
      what.consumer_tag = as_bytes(topic.name);
      ask(*control, what, topic.name, within);
    }
    control_ = std::move(control);
  }
  for (auto* queue : queues_) {
    if (queue->on) continue;
    if (queue->foreign == nullptr)
      consume(*queue, within);
    else if (steady::now() >= queue->ask_again)
      consume_alone(*queue, within);
  }
}

// Two readers of one queue would change the order, and take messages from each other's fence.
void queue_subscription::consume_alone(queue_state& from, const limit& within) try {
  consume(from, within);
  from.ask_again = {};
} catch (const refused& e) {
  if (e.why().code == code_not_found)
    throw error(errc::destination_unavailable,
                fmt::format("queue {}, which group {} reads, has been deleted; it is made by somebody else",
                            from.name, group_));
  if (e.why().code != code_access_refused) throw;
  const bool is_news = from.ask_again == steady::time_point{};
  from.ask_again = steady::now() + with_.balance_every;
  if (!is_news) return;
  with_.env.log->write(log_level::info, "queue_has_another_reader",
                       {{"group", group_}, {"queue", from.name}, {"error", e.what()}});
}

// Of a queue that has been deleted, the group is looked at: that throws what is missing until an operator
// wants it to be made anew, and then makes it, for the next call.
void queue_subscription::ask(channel& on, const amqp_basic_consume_t& what, const std::string& topic,
                             const limit& within) try {
  on.call(AMQP_BASIC_CONSUME_METHOD, what, within);
} catch (const refused& e) {
  if (e.why().code == code_not_found) topology_->declare_group(group_, topic, with_.queues, within);
  throw;
}

void queue_subscription::consume(queue_state& from, const limit& within) {
  auto on = std::make_unique<channel>(*on_, within);
  amqp_basic_qos_t ahead{};
  ahead.prefetch_count = static_cast<std::uint16_t>(with_.prefetch);
  on->call(AMQP_BASIC_QOS_METHOD, ahead, within);
  amqp_basic_consume_t what{};
  what.queue = as_bytes(from.name);
  what.exclusive = from.foreign != nullptr ? 1 : 0;
  if (from.foreign != nullptr)
    on->call(AMQP_BASIC_CONSUME_METHOD, what, within);
  else
    ask(*on, what, *from.topic, within);
  from.on = std::move(on);
  from.session = ++sessions_;
}

void queue_subscription::end_session(queue_state& of) {
  of.on.reset();
  if (std::exchange(of.assigned, false)) {
    const auto reported = std::ranges::find(assigned_, of.partition, &assigned_partition::partition);
    if (reported != assigned_.end())
      assigned_.erase(reported);  // nobody has heard of it
    else
      revoked_.push_back(of.partition);
  }
  of.probed = false;
  of.open = {};
  of.milestones.clear();
}

void queue_subscription::disconnect() {
  for (auto* queue : queues_) end_session(*queue);
  control_.reset();
  topology_.reset();
  on_.reset();
  acknowledging_ = 0;
  count_unacknowledged();
}

void queue_subscription::notice_ends() {
  if (!on_) return;
  if (const auto why = on_->broken()) {
    with_.env.log->write(log_level::warning, "broker_connection_lost", {{"group", group_}, {"error", *why}});
    return disconnect();
  }
  for (auto* queue : queues_) {
    const auto why = queue->on ? queue->on->ended() : std::nullopt;
    if (!why) continue;
    with_.env.log->write(log_level::warning, "queue_lost",
                         {{"group", group_}, {"queue", queue->name}, {"error", *why}});
    end_session(*queue);
  }
}

void queue_subscription::assign(queue_state& to) {
  if (std::exchange(to.assigned, true)) return;
  assigned_.push_back({to.partition, to.session, fmt::format("rabbitmq/{}/{}", to_.vhost, to.name)});
}

// Who gets a probe is the active consumer. It is nothing else, so nobody has to wait for its end.
void queue_subscription::notice_probes() {
  for (auto* queue : queues_) {
    if (!queue->on) continue;  // somebody else reads it
    const auto probes = queue->on->take_probes();
    for (const auto tag : probes) queue->on->send(AMQP_BASIC_ACK_METHOD, amqp_basic_ack_t{tag, 0});
    if (!probes.empty() || queue->on->has_arrivals()) assign(*queue);
  }
  control_->flush();
}

// They are taken before the messages behind them.
void queue_subscription::notice_milestones() {
  for (auto* queue : queues_)
    if (queue->on)
      for (auto& one : queue->on->take_milestones()) queue->milestones.push_back(std::move(one));
}

// Those with nothing open before them, whether it was delivered or waits here.
void queue_subscription::pass_milestones(queue_state& of, const limit& within) {
  std::erase_if(of.milestones, [&](const milestone& one) {
    const auto arrived = of.on->first_arrived();
    if (of.open.first() < one.tag || (arrived && *arrived < one.tag)) return false;
    of.on->send(AMQP_BASIC_ACK_METHOD, amqp_basic_ack_t{one.tag, 0});
    assign(of);
    // Without an answer it is asked for again.
    if (control_ && !control_->ended()) answer_milestone(*control_, one.text, within);
    return true;
  });
}

fetched queue_subscription::fetch(std::size_t messages_max, const call_limits& limits) {
  const auto within = limit::of(limits);
  notice_ends();
  finish_acknowledging(within);
  connect(within);
  notice_probes();
  balance_if_due(within);
  fetched out;
  notice_milestones();
  for (auto* queue : queues_) {
    if (!queue->on || queue->milestones.empty()) continue;
    pass_milestones(*queue, within);
    control_->flush();
  }
  out.deliveries = deliver(messages_max);
  out.revoked = std::exchange(revoked_, {});
  out.assigned = std::exchange(assigned_, {});
  count_unacknowledged();
  return out;
}

void queue_subscription::count_unacknowledged() {
  std::int64_t now = 0;
  for (const auto* queue : queues_) now += static_cast<std::int64_t>(queue->open.size());
  if (const auto more = now - std::exchange(counted_, now); more != 0)
    with_.env.counters->add("settle_rabbitmq_unacknowledged_messages", {{"group", group_}}, more);
}

message queue_subscription::read(arrived_message&& one, const queue_state& from) {
  if (from.foreign == nullptr) return read_message(std::move(one.content), *from.topic);
  one.content.properties.emplace_back("exchange", std::move(one.exchange));
  one.content.properties.emplace_back("routing-key", std::move(one.routing_key));
  return read_foreign_message(std::move(one.content), *from.topic, *from.foreign);
}

std::vector<delivery> queue_subscription::deliver(std::size_t messages_max) {
  std::vector<delivery> all;
  const auto first = turn_++;
  for (std::size_t i = 0; i < queues_.size() && all.size() < messages_max; ++i) {
    auto& from = *queues_[(first + i) % queues_.size()];
    if (!from.on) continue;
    for (auto& one : from.on->take(messages_max - all.size())) {
      assign(from);
      from.open.delivered(one.tag);
      all.push_back({.content = read(std::move(one), from), .tag = {from.partition, from.session, one.tag}});
    }
  }
  return all;
}

void queue_subscription::acknowledge(std::span<const delivery_tag> done, const call_limits& limits) {
  unsent_.insert(unsent_.end(), done.begin(), done.end());
  finish_acknowledging(limit::of(limits));
  count_unacknowledged();
}

// What fails here is tried again by the next call.
void queue_subscription::finish_acknowledging(const limit& within) {
  if (!unsent_.empty())
    with_fault_points(with_.env, "broker.acknowledge", [&] { send_acknowledgements(within); });
  for (; acknowledging_ > 0 && control_ && !control_->ended(); --acknowledging_)
    control_->await_answer(within);
}

// The server does not answer acknowledgements. That it answers something that was sent after them shows that
// it has them: the least that lets a caller notice that nobody listens.
void queue_subscription::send_acknowledgements(const limit& within) {
  if (control_ && !control_->ended()) notice_probes();
  notice_milestones();
  std::map<queue_state*, std::vector<std::uint64_t>> by_queue;
  for (const auto& tag : unsent_) {
    auto& queue = queue_of(tag.partition);
    if (queue.on && is_of(tag, queue.session)) by_queue[&queue].push_back(tag.number);
  }
  bool said = false;
  for (auto& [queue, tags] : by_queue) {
    if (queue->on->ended()) continue;
    const auto all = queue->open.done(std::move(tags));
    pass_milestones(*queue, within);  // or else the words below would pass them
    for (const auto& words : all) {
      amqp_basic_ack_t what{words.tag, words.and_all_before ? 1 : 0};
      queue->on->send(AMQP_BASIC_ACK_METHOD, what);
      said = true;
    }
  }
  unsent_.clear();
  if (!said || !control_ || control_->ended()) return;
  control_->send(AMQP_BASIC_QOS_METHOD, amqp_basic_qos_t{});
  ++acknowledging_;
  control_->flush();
}

queue_subscription::queue_state& queue_subscription::queue_of(std::uint32_t partition) {
  return topics_.at(partition >> queue_bits).queues.at(partition & ((1U << queue_bits) - 1));
}

// The session ends with its channel. If nobody else waits for the queue, it is ours again when we ask.
void queue_subscription::doubt(std::uint32_t partition) {
  auto& queue = queue_of(partition);
  if (!queue.on) return;
  queue.assigned = false;  // whoever doubts knows that it is lost
  if (put_back_alone(*queue.on, queue.open)) return;
  try {
    if (!queue.on->ended()) queue.on->close(limit::within(with_.connect_timeout));
    end_session(queue);
  } catch (const error&) {
    disconnect();  // whatever the channel holds comes back with the end of the line
  }
}

void queue_subscription::leave() noexcept {
  try {
    const auto within = limit::within(farewell_within);
    if (on_ && !on_->broken()) {
      finish_acknowledging(within);
      for (const auto& topic : topics_)  // so that nobody counts us from here on
        if (control_ && !topic.foreign)
          control_->call(AMQP_BASIC_CANCEL_METHOD, amqp_basic_cancel_t{as_bytes(topic.name), 0}, within);
      on_->close(within);
    }
  } catch (const std::exception&) {  // what was not acknowledged comes again, and is recognised
  }
  disconnect();
  unsent_.clear();
  revoked_.clear();
  assigned_.clear();
}

void queue_subscription::wait(duration at_most, std::stop_token stop) {
  if (!on_ || on_->broken()) return pause(at_most, stop);
  seen_ = on_->await_arrivals(seen_, limit::within(at_most, std::move(stop)));
}

}  // namespace settle::inline v0::rabbitmq
