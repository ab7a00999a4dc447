#include "rabbitmq/publisher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/lanes.hpp"
#include "broker/admission.hpp"
#include "rabbitmq/routing_key.hpp"
#include "rabbitmq/seams.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

publish_result failed(std::string why) { return {publish_status::destination_failed, std::move(why)}; }

// "PRECONDITION_FAILED - message size 134217729 is larger than configured max size 134217728": the last
// number.
std::optional<std::size_t> size_limit(const refusal& why) {
  if (why.code != code_precondition_failed || why.text.find("message size") == std::string::npos)
    return std::nullopt;
  const auto digits = why.text.find_last_of("0123456789");
  if (digits == std::string::npos) return std::nullopt;
  const auto before = why.text.find_last_not_of("0123456789", digits);
  std::size_t size = 0;
  std::from_chars(why.text.data() + before + 1, why.text.data() + digits + 1, size);
  return size;
}

}  // namespace

std::string confirming_publisher::refusal_of(const message& m) const {
  if (message_bytes_max_ && m.payload.size() > *message_bytes_max_)
    return fmt::format("it has {} bytes; the server takes {} (max_message_size)", m.payload.size(),
                       *message_bytes_max_);
  constexpr std::size_t attributes_bytes_max = frame_writer::frame_bytes_max - 4096;  // the rest is ours
  constexpr std::size_t around_each = 32;
  std::size_t bytes = m.id.size() * 2 + m.source.size() + m.subject.size() + m.key.size();
  for (const auto& [name, value] : m.extensions) bytes += name.size() + value.size() + around_each;
  if (bytes > attributes_bytes_max)
    return fmt::format("its attributes have {} bytes; AMQP takes {}", bytes, attributes_bytes_max);
  const auto* other = existing(m.topic);
  if (other == nullptr) return unusable_topic({with_.prefix}, m.topic);
  const auto key_bytes = routing_key_of(m, other->routing_key).size();
  if (key_bytes > name_bytes_max)
    return fmt::format("its routing key would have {} bytes; RabbitMQ takes {}", key_bytes, name_bytes_max);
  return {};
}

std::vector<publish_result> confirming_publisher::publish(std::span<const message> batch,
                                                          const call_limits& limits) {
  const auto within = limit::of(limits);
  std::unique_lock lock(turn_);
  const bool mine = turn_changed_.wait_until(lock, within.stop, within.until, [&] { return !busy_; });
  if (mine && on_ && on_->broken()) disconnect();
  auto [results, accepted] =
      admit(batch, [&](const message& m) { return mine ? refusal_of(m) : std::string(); });
  if (!mine || within.stop.stop_requested()) {
    for (const auto i : accepted)
      results[i] = failed(mine || within.stop.stop_requested() ? "stopped by the caller"
                                                               : "others publish for longer than the limit");
    return results;
  }
  if (accepted.empty()) return results;
  busy_ = true;
  lock.unlock();
  try {
    with_fault_points(with_.env, "broker.store", [&] { publish_alone(batch, accepted, results, within); });
  } catch (const std::exception& e) {
    for (const auto i : accepted) results[i] = failed(e.what());
  }
  lock.lock();
  busy_ = false;
  turn_changed_.notify_one();
  lock.unlock();
  hold_back_later_ones(batch, results);
  return results;
}

void confirming_publisher::publish_alone(std::span<const message> batch,
                                         const std::vector<std::size_t>& accepted,
                                         std::vector<publish_result>& results, const limit& within) {
  attempt mine{batch, results};
  closed_.reset();
  connect(within);
  if (const auto alarm = on_->blocked()) {
    for (const auto i : accepted)
      results[i] = failed(fmt::format("{} takes no messages now: {}", to_.name(), *alarm));
    return;
  }
  const auto wanted = open_topics(mine, accepted, within);
  confirms counted(numbers_ + 1);
  const auto why = send_and_await(mine, wanted, counted, within);
  for (std::size_t n = mine.sent.size(); n < wanted.size(); ++n) results[wanted[n]] = failed(why);
  numbers_ += counted.count();
  judge(mine, counted, why);
}

void confirming_publisher::connect(const limit& within) {
  if (!on_) {
    const names called{with_.prefix};
    on_ = std::make_unique<connection>(to_, with_, "settle publisher", within);
    topology_ = std::make_unique<topology>(*on_, called);
    // Not the number that we had: what is still on its way on the broken line must not come in by it.
    ++slot_;
    entrance_ = std::make_unique<entrance>(*on_, *topology_, called, slot_);
  }
  const auto closed = channel_ ? channel_->closed() : std::nullopt;
  if (channel_ && !closed) return;
  channel_.reset();
  if (closed && closed->code == code_not_found) {  // an exchange of one of the topics has gone
    entrance_->close_all();
    found_.clear();
  }
  channel_ = std::make_unique<channel>(*on_, within);
  channel_->call(AMQP_CONFIRM_SELECT_METHOD, amqp_confirm_select_t{}, within);
  numbers_ = 0;
}

void confirming_publisher::disconnect() {
  channel_.reset();
  entrance_.reset();
  topology_.reset();
  on_.reset();
  found_.clear();
  message_bytes_max_.reset();  // perhaps it was raised with a restart
}

const existing_exchange* confirming_publisher::existing(const std::string& topic) const {
  const auto found = std::ranges::find(with_.existing_exchanges, topic, &existing_exchange::topic);
  return found == with_.existing_exchanges.end() ? nullptr : &*found;
}

bool confirming_publisher::is_open(const std::string& topic) const {
  return existing(topic) == nullptr ? entrance_->is_open(topic) : found_.contains(topic);
}

void confirming_publisher::open(const std::string& topic, const limit& within) {
  const auto* other = existing(topic);
  if (other == nullptr) return entrance_->open(topic, within);
  if (!other->exchange.empty() && !topology_->has_exchange(other->exchange, within))
    throw refused(to_.name(), {code_not_found, "there is no exchange " + other->exchange + ", which topic " +
                                                   topic + " goes to; it is made by somebody else"});
  found_.insert(topic);
}

// Those whose topics are there. A topic that cannot be made fails alone.
std::vector<std::size_t> confirming_publisher::open_topics(const attempt& of,
                                                           const std::vector<std::size_t>& accepted,
                                                           const limit& within) {
  std::map<std::string_view, std::string> refused_topics;
  std::vector<std::size_t> wanted;
  for (const auto i : accepted) {
    const auto& topic = of.batch[i].topic;
    if (!is_open(topic) && !refused_topics.contains(topic)) {
      try {
        open(topic, within);
      } catch (const refused& e) {
        refused_topics.emplace(topic, e.what());
      }
    }
    if (const auto why = refused_topics.find(topic); why != refused_topics.end())
      of.results[i] = {publish_status::topic_unavailable, why->second};
    else
      wanted.push_back(i);
  }
  return wanted;
}

// Gives why not all of them have an answer; empty: all have.
std::string confirming_publisher::send_and_await(attempt& of, const std::vector<std::size_t>& wanted,
                                                 confirms& counted, const limit& within) try {
  for (const auto i : wanted) {
    send(of, i, counted, within);
    if (const auto alarm = on_->blocked())
      return fmt::format("{} takes no messages now: {}", to_.name(), *alarm);
  }
  send_checks(of, counted, within);
  batch_was_sent(*channel_, counted);
  while (!counted.complete()) {
    const auto said = channel_->await_news(within);
    take(said, counted);
    if (said.closed) {
      closed_ = said.closed;
      return fmt::format("{}: {}", to_.name(), said.closed->text);
    }
    if (said.blocked && said.confirmations.empty() && said.returned.empty())
      return fmt::format("{} takes no messages now: {}", to_.name(), *said.blocked);
  }
  return {};
} catch (const refused& e) {
  closed_ = e.why();
  take(channel_->take_news(), counted);
  return e.what();
} catch (const error& e) {
  // What is on its way may still be stored. Nothing waits for it any more, and the next call sends again, in
  // order, on a connection of its own.
  if (channel_) take(channel_->take_news(), counted);
  disconnect();
  return e.what();
}

void confirming_publisher::send(attempt& of, std::size_t which, confirms& counted, const limit& within) {
  const auto& m = of.batch[which];
  outgoing sent(m, counted.next_number());
  const auto* other = existing(m.topic);
  const auto exchange = other != nullptr           ? other->exchange
                        : trusts_what_it_finds() ? names{with_.prefix}.exchange(m.topic)
                                                   : entrance_->exchange(m.topic);
  const auto key =
      other != nullptr ? routing_key_of(m, other->routing_key) : std::to_string(lane_of(m.key, m.id));
  // Attributes were measured before; this is a server that wants smaller frames than any that we know.
  if (!channel_->publish(exchange, key, sent.properties(), m.payload, within))
    throw error(errc::destination_unavailable,
                to_.name() + " allows no frames that the attributes fit into");
  if (other == nullptr && !trusts_what_it_finds()) of.checks.try_emplace(m.topic, 0);
  counted.sent();
  of.sent.push_back(which);
}

void confirming_publisher::send_checks(attempt& of, confirms& counted, const limit& within) {
  for (auto& [topic, at] : of.checks) {
    at = counted.count();
    entrance_->send_check(*channel_, topic, counted.next_number(), within);
    counted.sent();
  }
}

void confirming_publisher::take(const channel::news& said, confirms& counted) {
  for (const auto number : said.returned) counted.take_return(number);
  for (const auto& one : said.confirmations) counted.take(one);
}

// Topics of which it is not known that all of their messages were routed to every group; and why.
std::map<std::string, std::string, std::less<>> confirming_publisher::doubts(const attempt& of,
                                                                             const confirms& counted,
                                                                             const std::string& why) {
  std::map<std::string, std::string, std::less<>> found;
  for (const auto& [topic, at] : of.checks) {
    if (at != 0 && counted.is_confirmed(at)) continue;
    if (entrance_ && at != 0 && counted.is_returned(at)) entrance_->close(topic);
    found.emplace(topic, !why.empty() ? why
                                      : fmt::format("exchange {} was deleted meanwhile; it is made again, and "
                                                    "what some group may have missed is sent again",
                                                    names{with_.prefix}.exchange(topic)));
  }
  return found;
}

void confirming_publisher::judge(const attempt& of, const confirms& counted, const std::string& why) {
  const auto largest = closed_ ? size_limit(*closed_) : std::nullopt;
  if (largest) message_bytes_max_ = largest;
  const auto doubtful = doubts(of, counted, why);
  for (std::size_t n = 0; n < of.sent.size(); ++n) {
    const auto& m = of.batch[of.sent[n]];
    auto& result = of.results[of.sent[n]];
    const auto doubt = doubtful.find(m.topic);
    if (largest && m.payload.size() > *largest) {
      result = {publish_status::message_rejected, refusal_of(m)};
    } else if (counted.is_refused(n)) {
      result = failed(fmt::format("{} has refused it: a queue is full or not available", to_.name()));
    } else if (doubt != doubtful.end()) {
      result = failed(doubt->second);
    } else if (counted.is_confirmed(n)) {
      result = {};
    } else if (counted.is_returned(n) && with_.without_groups == unrouted::discard) {
      result = {};
      with_.env.counters->add("settle_rabbitmq_discarded_total", {{"topic", m.topic}});
    } else if (counted.is_returned(n)) {
      result = {publish_status::topic_unavailable,
                fmt::format("no group listens to topic {}: its messages wait until one is created", m.topic)};
    } else {
      result = failed(why);
    }
  }
}

}  // namespace settle::inline v0::rabbitmq
