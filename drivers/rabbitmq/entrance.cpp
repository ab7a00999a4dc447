#include "rabbitmq/entrance.hpp"

#include "settle/error.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

// So many publishers may be connected under one prefix.
constexpr int slots_max = 4096;
// What a publisher leaves behind when it dies is used again after so many others.
constexpr int slots_in_turn = 16;

}  // namespace

// The queue is ours alone, and keeps nothing.
void entrance::take_slot(const limit& within) {
  const int first = slot_ % slots_in_turn;
  for (slot_ = first; slot_ < first + slots_max; ++slot_) try {
      const auto queue = names_.publisher(slot_);
      table arguments;
      arguments.add("x-message-ttl", std::int64_t{0});
      amqp_queue_declare_t what{};
      what.queue = as_bytes(queue);
      what.exclusive = 1;
      what.arguments = arguments.get();
      channel(on_, within).call(AMQP_QUEUE_DECLARE_METHOD, what, within);
      queue_ = queue;
      return;
    } catch (const refused& e) {
      if (e.why().code != code_locked) throw;
    }
  throw error(errc::destination_unavailable, "too many publishers are connected to " + names_.publisher(0));
}

// Our binding comes before those of the groups: if the topic's exchange is deleted meanwhile, ours is gone
// as well.
void entrance::open(const std::string& topic, const limit& within) {
  close(topic);
  if (queue_.empty()) take_slot(within);
  const auto& own =
      ways_.try_emplace(topic, queue_ + "/" + std::to_string(ways_.size())).first->second;
  topology_.declare_topic(topic, within);
  topology_.make_way(own, topic, within);
  topology_.bind(queue_, topic, queue_, within);
  topology_.bind_all_groups(topic, within);
  open_.insert(topic);
}

// Binding what is bound already changes nothing, but waits until a deletion of the exchange that has begun
// is through: other than routing, which looks at what is there at the moment. Without an exchange it ends the
// channel. The message behind it comes back if our binding has gone.
void entrance::send_check(channel& on, const std::string& topic, std::uint64_t number,
                          const limit& within) const {
  const auto whole = names_.exchange(topic);
  amqp_queue_bind_t wait{};
  wait.queue = as_bytes(queue_);
  wait.exchange = as_bytes(whole);
  wait.routing_key = as_bytes(queue_);
  wait.nowait = 1;
  on.send(AMQP_QUEUE_BIND_METHOD, wait);
  table headers;
  headers.add(number_header, static_cast<std::int64_t>(number));
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = headers.get();
  on.publish(exchange(topic), queue_, properties, "", within);
}

}  // namespace settle::inline v0::rabbitmq
