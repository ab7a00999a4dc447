// Exchanges and queues as Settle sets them up, and their names.
//
//   orders                      the topic's exchange
//   warehouse/orders            the mark of the group: how many queues it has, and one message once all are there
//   warehouse/orders/0 … /7     its queues; lane l goes to queue l mod 8
//   orders.dlq                  of a topic for dead letters: exchange, and a queue that gets everything
//   settle.registry             a message for each topic and group that was ever made, for those who look
//   settle.publisher.0          of one connection that publishes; settle.publisher.0/0 … its ways to topics
//
// "%" and "/" in the names of groups and topics are written %25 and %2F in the names of queues.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rabbitmq/connection.hpp"

namespace settle::inline v0::rabbitmq {

struct names {
  std::string prefix;

  std::string exchange(std::string_view topic) const { return prefix + std::string(topic); }
  std::string mark(std::string_view group, std::string_view topic) const;
  std::string queue(std::string_view group, std::string_view topic, int index) const;
  std::string members(std::string_view group, std::string_view topic) const;
  std::string registry() const { return prefix + "settle.registry"; }
  std::string publisher(int slot) const { return prefix + "settle.publisher." + std::to_string(slot); }
};

inline constexpr std::string_view dead_letter_suffix = ".dlq";
inline constexpr std::size_t name_bytes_max = 255;  // of exchanges, queues and routing keys

// Why no exchange can have the name of this topic; empty: one can.
std::string unusable_topic(const names& of, std::string_view topic);

// How many are ready in a queue, and how many consume from it.
struct queue_state {
  std::int64_t ready = 0;
  std::int64_t consumers = 0;
};

// What was made, in the order of its making. May name what has been removed since.
struct registered {
  std::string group;  // empty: the topic alone
  std::string topic;
  int queues = 0;
  friend bool operator==(const registered&, const registered&) = default;
};

// Asks and declares on a connection, through a channel of its own: the server closes that when it refuses.
class topology {
 public:
  topology(connection& on, names of) : on_(on), names_(std::move(of)) {}

  // The topic's exchange, and for dead letters their queue. That its groups are bound to it is up to whoever
  // publishes: bind_all_groups().
  void declare_topic(const std::string& topic, const limit& within);

  // Every group that was ever made on the topic and is there is bound to its exchange, also one that is still
  // being made: whoever is at it may have bound a part of it to an exchange that has been deleted since.
  void bind_all_groups(const std::string& topic, const limit& within);

  // Makes the exchange `way` anew. All that is published to it goes on to the topic's exchange.
  void make_way(const std::string& way, const std::string& topic, const limit& within);

  void bind(const std::string& queue, const std::string& topic, const std::string& routing_key,
            const limit& within);

  // All that a group needs on one topic. What is there already is looked at: throws invalid_argument if it
  // was made with another number of queues, and destination_unavailable if a queue of it has been deleted.
  void declare_group(const std::string& group, const std::string& topic, int queues, const limit& within);

  // Nothing: there is no such queue.
  std::optional<queue_state> look_at(const std::string& queue, const limit& within);
  bool has_exchange(const std::string& name, const limit& within);

  std::vector<registered> registry(const limit& within);

  // With everything that waits in it.
  void remove(const registered& what, const limit& within);
  // Throws invalid_argument if there is no such group, or while somebody reads for it.
  void remove_group(const std::string& group, const std::string& topic, const limit& within);
  void purge(const std::string& queue, const limit& within);
  void remove_registry(const limit& within) { delete_queue(names_.registry(), within); }

 private:
  channel& control(const limit& within);
  channel& confirming(const limit& within);
  std::int64_t declare_queue(const std::string& name, table arguments, const limit& within);
  void declare_exchange(const std::string& name, const char* type, bool durable, const limit& within);
  void delete_exchange(const std::string& name, const limit& within);
  struct lane_binding {
    std::string queue;
    int lane = 0;
  };
  void bind_lanes(const std::vector<lane_binding>& all, const std::string& topic, const limit& within);
  void add_lanes_of(const registered& group, std::vector<lane_binding>& to, const limit& within);
  void put(const std::string& queue, const registered& what, const limit& within);
  void enter(const registered& what, const limit& within);
  std::int64_t declare_mark(const std::string& group, const std::string& topic, int queues,
                            const limit& within);
  void delete_queue(const std::string& name, const limit& within);

  connection& on_;
  names names_;
  std::unique_ptr<channel> control_;
  std::unique_ptr<channel> confirming_;
};

}  // namespace settle::inline v0::rabbitmq
