#include "rabbitmq/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/lanes.hpp"
#include "base/pause.hpp"
#include "settle/event.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

constexpr duration registry_retry = std::chrono::milliseconds(20);
constexpr std::uint8_t durable = 2;

std::string escaped(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c == '%')
      made += "%25";
    else if (c == '/')
      made += "%2F";
    else
      made += c;
  }
  return made;
}

std::string checked(std::string name) {
  if (name.size() > name_bytes_max)
    throw error(errc::invalid_name, fmt::format("the queues of group and topic would have names of {} bytes; "
                                                "RabbitMQ takes {}: {}",
                                                name.size(), name_bytes_max, name));
  return name;
}

int number_of(const std::string* text) {
  int read = 0;
  if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), read);
  return read;
}

void send_bind(channel& on, const std::string& queue, const std::string& exchange, int lane) {
  const auto key = std::to_string(lane);
  amqp_queue_bind_t what{};
  what.queue = as_bytes(queue);
  what.exchange = as_bytes(exchange);
  what.routing_key = as_bytes(key);
  on.send(AMQP_QUEUE_BIND_METHOD, what);
}

registered read_entry(const wire_message& from) {
  const auto text = [&](const char* name) {
    const auto* found = from.header(name);
    return found != nullptr ? *found : std::string();
  };
  return {text("group"), text("topic"), number_of(from.header("queues"))};
}

}  // namespace

std::string names::mark(std::string_view group, std::string_view topic) const {
  return checked(fmt::format("{}{}/{}", prefix, escaped(group), escaped(topic)));
}

std::string names::queue(std::string_view group, std::string_view topic, int index) const {
  return checked(fmt::format("{}{}/{}/{}", prefix, escaped(group), escaped(topic), index));
}

std::string names::members(std::string_view group, std::string_view topic) const {
  return checked(fmt::format("{}{}/{}/members", prefix, escaped(group), escaped(topic)));
}

std::string unusable_topic(const names& of, std::string_view topic) {
  const auto name = of.exchange(topic);
  if (name.starts_with("amq.")) return "RabbitMQ keeps names that begin with \"amq.\" for itself";
  if (name.size() > name_bytes_max)
    return fmt::format("its exchange would have a name of {} bytes; RabbitMQ takes {}", name.size(),
                       name_bytes_max);
  return {};
}

channel& topology::control(const limit& within) {
  if (!control_ || control_->ended()) {
    control_.reset();
    control_ = std::make_unique<channel>(on_, within);
  }
  return *control_;
}

channel& topology::confirming(const limit& within) {
  if (!confirming_ || confirming_->ended()) {
    confirming_.reset();
    confirming_ = std::make_unique<channel>(on_, within);
    confirming_->call(AMQP_CONFIRM_SELECT_METHOD, amqp_confirm_select_t{}, within);
  }
  return *confirming_;
}

bool topology::has_exchange(const std::string& name, const limit& within) try {
  amqp_exchange_declare_t what{};
  what.exchange = as_bytes(name);
  what.type = as_bytes("direct");
  what.passive = 1;
  control(within).call(AMQP_EXCHANGE_DECLARE_METHOD, what, within);
  return true;
} catch (const refused& e) {
  if (e.why().code != code_not_found) throw;
  return false;
}

std::optional<queue_state> topology::look_at(const std::string& queue, const limit& within) try {
  amqp_queue_declare_t what{};
  what.queue = as_bytes(queue);
  what.passive = 1;
  const auto said = control(within).call(AMQP_QUEUE_DECLARE_METHOD, what, within);
  return queue_state{said.messages, said.consumers};
} catch (const refused& e) {
  if (e.why().code != code_not_found) throw;
  return std::nullopt;
}

void topology::declare_exchange(const std::string& name, const char* type, bool durable,
                                const limit& within) {
  amqp_exchange_declare_t what{};
  what.exchange = as_bytes(name);
  what.type = as_bytes(type);
  what.durable = durable ? 1 : 0;
  control(within).call(AMQP_EXCHANGE_DECLARE_METHOD, what, within);
}

void topology::delete_exchange(const std::string& name, const limit& within) {
  amqp_exchange_delete_t what{};
  what.exchange = as_bytes(name);
  control(within).call(AMQP_EXCHANGE_DELETE_METHOD, what, within);
}

// Gives how many messages are ready in it.
std::int64_t topology::declare_queue(const std::string& name, table arguments, const limit& within) {
  arguments.add("x-queue-type", std::string_view("quorum"));
  // From 4.0 on the server drops what was delivered twenty times; we decide ourselves what is given up.
  if (major_version(on_.server()) >= 4) arguments.add("x-delivery-limit", std::int64_t{-1});
  amqp_queue_declare_t what{};
  what.queue = as_bytes(name);
  what.durable = 1;
  what.arguments = arguments.get();
  return control(within).call(AMQP_QUEUE_DECLARE_METHOD, what, within).messages;
}

void topology::bind(const std::string& queue, const std::string& topic, const std::string& routing_key,
                    const limit& within) {
  const auto exchange = names_.exchange(topic);
  amqp_queue_bind_t what{};
  what.queue = as_bytes(queue);
  what.exchange = as_bytes(exchange);
  what.routing_key = as_bytes(routing_key);
  control(within).call(AMQP_QUEUE_BIND_METHOD, what, within);
}

// All at once: so many round trips would take their time.
void topology::bind_lanes(const std::vector<lane_binding>& all, const std::string& topic,
                          const limit& within) {
  auto& on = control(within);
  const auto exchange = names_.exchange(topic);
  for (const auto& one : all) send_bind(on, one.queue, exchange, one.lane);
  on.flush();
  for (std::size_t i = 0; i < all.size(); ++i) on.await_answer(within);
}

void topology::put(const std::string& queue, const registered& what, const limit& within) {
  const auto queues = std::to_string(what.queues);
  table headers;
  headers.add("group", std::string_view(what.group))
      .add("topic", std::string_view(what.topic))
      .add("queues", std::string_view(queues));
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties.headers = headers.get();
  properties.delivery_mode = durable;
  auto& on = confirming(within);
  on.publish("", queue, properties, "", within);
  const auto said = on.await_news(within);
  if (said.closed) throw refused(queue, *said.closed);
  if (said.confirmations.empty() || !said.confirmations[0].positive)
    throw error(errc::destination_unavailable, "the server has not confirmed a message to " + queue);
}

void topology::enter(const registered& what, const limit& within) {
  declare_queue(names_.registry(), {}, within);
  put(names_.registry(), what, within);
}

void topology::declare_topic(const std::string& topic, const limit& within) {
  const auto exchange = names_.exchange(topic);
  if (!has_exchange(exchange, within)) {
    enter({"", topic, 0}, within);
    declare_exchange(exchange, "direct", true, within);
  } else if (!topic.ends_with(dead_letter_suffix) || look_at(exchange, within)) {
    return;
  }
  if (topic.ends_with(dead_letter_suffix)) bind_all_groups(topic, within);
}

void topology::make_way(const std::string& way, const std::string& topic, const limit& within) {
  delete_exchange(way, within);  // of an earlier connection with our number, with where it led to
  declare_exchange(way, "fanout", false, within);
  const auto whole = names_.exchange(topic);
  amqp_exchange_bind_t what{};
  what.source = as_bytes(way);
  what.destination = as_bytes(whole);
  control(within).call(AMQP_EXCHANGE_BIND_METHOD, what, within);
}

void topology::bind_all_groups(const std::string& topic, const limit& within) {
  std::vector<lane_binding> all;
  for (const auto& one : registry(within))
    if (one.topic == topic && !one.group.empty()) add_lanes_of(one, all, within);
  if (topic.ends_with(dead_letter_suffix)) {
    const auto queue = names_.exchange(topic);
    declare_queue(queue, {}, within);
    for (int lane = 0; lane < lane_count; ++lane) all.push_back({queue, lane});
  }
  bind_lanes(all, topic, within);
}

// None, if the group has been removed, or has another number of queues now: the registry still knows what
// was there before. Of a group that is complete no queue may be missing, which binding to it shows.
void topology::add_lanes_of(const registered& group, std::vector<lane_binding>& to, const limit& within) {
  const auto mark = look_at(names_.mark(group.group, group.topic), within);
  if (!mark) return;
  try {
    declare_mark(group.group, group.topic, group.queues, within);
  } catch (const error& e) {
    if (e.code() != errc::invalid_argument) throw;
    return;
  }
  for (int i = 0; i < group.queues; ++i) {
    const auto queue = names_.queue(group.group, group.topic, i);
    if (mark->ready == 0 && !look_at(queue, within)) continue;
    for (int lane = i; lane < lane_count; lane += group.queues) to.push_back({queue, lane});
  }
}

// The mark is a queue whose length limit is the number of queues: the one thing that the server compares by
// itself when a queue is declared again, and that does no harm.
std::int64_t topology::declare_mark(const std::string& group, const std::string& topic, int queues,
                                    const limit& within) try {
  table arguments;
  arguments.add("x-max-length", std::int64_t{queues});
  return declare_queue(names_.mark(group, topic), arguments, within);
} catch (const refused& e) {
  if (e.why().code != code_precondition_failed) throw;
  throw error(errc::invalid_argument,
              fmt::format("group {} on topic {} was created with another number of queues than {}: {}", group,
                          topic, queues, e.why().text));
}

void topology::declare_group(const std::string& group, const std::string& topic, int queues,
                             const limit& within) {
  declare_topic(topic, within);
  const bool complete = declare_mark(group, topic, queues, within) > 0;
  declare_queue(names_.members(group, topic), {}, within);
  for (int i = 0; i < queues && complete; ++i) {
    const auto queue = names_.queue(group, topic, i);
    if (!look_at(queue, within))
      throw error(
          errc::destination_unavailable,
          fmt::format("queue {} of group {} has been deleted; what was published since is lost to the "
                      "group. Delete its mark {} to have the queue made anew; what waits in the others stays",
                      queue, group, names_.mark(group, topic)));
  }
  if (complete) return;
  enter({group, topic, queues}, within);
  for (int i = 0; i < queues; ++i) {
    const auto queue = names_.queue(group, topic, i);
    table arguments;
    arguments.add("x-single-active-consumer", true);
    declare_queue(queue, arguments, within);
    std::vector<lane_binding> lanes;
    for (int lane = i; lane < lane_count; lane += queues) lanes.push_back({queue, lane});
    bind_lanes(lanes, topic, within);
  }
  put(names_.mark(group, topic), {group, topic, queues}, within);
}

// Messages are taken and given back, so only one can read at a time: whoever has an exclusive queue of this
// name.
std::vector<registered> topology::registry(const limit& within) {
  const auto guard = names_.registry() + ".reader";
  while (true) {
    try {
      amqp_queue_declare_t what{};
      what.queue = as_bytes(guard);
      what.exclusive = 1;
      control(within).call(AMQP_QUEUE_DECLARE_METHOD, what, within);
      break;
    } catch (const refused& e) {
      if (e.why().code != code_locked) throw;
      if (steady::now() >= within.until || within.stop.stop_requested()) throw;
      pause(registry_retry, within.stop);
    }
  }
  std::vector<registered> all;
  if (look_at(names_.registry(), within)) {
    channel reading(on_, within);
    while (const auto one = reading.get(names_.registry(), within)) {
      auto entry = read_entry(one->content);
      if (std::ranges::find(all, entry) == all.end()) all.push_back(std::move(entry));
    }
    reading.close(within);
  }
  delete_queue(guard, within);
  return all;
}

void topology::delete_queue(const std::string& name, const limit& within) {
  amqp_queue_delete_t what{};
  what.queue = as_bytes(name);
  control(within).call(AMQP_QUEUE_DELETE_METHOD, what, within);
}

void topology::purge(const std::string& queue, const limit& within) {
  amqp_queue_purge_t what{};
  what.queue = as_bytes(queue);
  control(within).call(AMQP_QUEUE_PURGE_METHOD, what, within);
}

void topology::remove_group(const std::string& group, const std::string& topic, const limit& within) {
  const auto all = registry(within);
  registered known{group, topic, 0};  // with the most queues that it ever had
  for (const auto& one : all)
    if (one.group == group && one.topic == topic) known.queues = std::max(known.queues, one.queues);
  if (known.queues == 0 || !look_at(names_.mark(group, topic), within))
    throw error(errc::invalid_argument, fmt::format("there is no group {} on topic {}", group, topic));
  const auto members = look_at(names_.members(group, topic), within);
  if (members && members->consumers > 0)
    throw error(errc::invalid_argument, fmt::format("group {} on topic {} has members that are alive: {}",
                                                    group, topic, members->consumers));
  remove(known, within);
}

void topology::remove(const registered& what, const limit& within) {
  if (!what.group.empty()) {
    delete_queue(names_.mark(what.group, what.topic), within);
    delete_queue(names_.members(what.group, what.topic), within);
    for (int i = 0; i < what.queues; ++i) delete_queue(names_.queue(what.group, what.topic, i), within);
    return;
  }
  const auto name = names_.exchange(what.topic);
  delete_exchange(name, within);
  if (what.topic.ends_with(dead_letter_suffix)) delete_queue(name, within);
}

}  // namespace settle::inline v0::rabbitmq
