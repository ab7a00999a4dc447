// What Settle asks of a message broker: confirmed publishes, and deliveries that are acknowledged after the
// work is done. For those who write a driver; not stable: it changes with what new brokers teach.
//
// What a broker can do is asked (broker_traits). Brokers with logs and owners (the embedded one, Kafka),
// brokers with queues that have one active consumer (RabbitMQ as Settle sets it up) and brokers that hand out
// single messages to whoever asks all fit; tests/conformance/broker_suite.hpp says when a driver is done.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settle/broker.hpp"
#include "settle/wakeup.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct broker_traits {
  // A partition belongs to one member of a group at a time, and the member is told when it is assigned.
  // Its consumer then fences it: one that was replaced without knowing cannot write any more.
  bool has_owners = true;
  // Messages have a position in their partition, and settled() tells how far it is done for good. Without
  // them, the records that recognise copies are kept by age alone.
  bool has_positions = true;
  // A group that is new gets what was published before it.
  bool replays_from_the_beginning = true;
  // All messages of a topic and key come through one partition, in the order in which they were stored.
  bool keeps_keys_together = true;
  // Without positions: for how long after its first delivery a message may be delivered again because its
  // acknowledgement was lost. The records of its consumers are kept for at least so long.
  duration redelivers_for = duration::zero();
};

// How long a call may take. Whoever made it gives up then; what it was to do may still have happened.
struct call_limits {
  duration within = std::chrono::seconds(30);
  std::stop_token stop = {};  // ends it at once
};

// All attributes of a message in a fixed order, empty ones left out. Drivers map them to headers with the
// prefix of their protocol. Every name is valid in CloudEvents, and none stands there twice: an extension
// that is called like an attribute of the message itself gets "header" in front.
std::vector<std::pair<std::string, std::string>> cloudevents_attributes(const message& of);

enum class publish_status {
  confirmed,           // the broker has it durably
  destination_failed,  // nobody's fault but the destination's: try again later, charge no attempt
  message_rejected,    // this message will never be accepted as it is
  topic_unavailable,   // not stored: nobody takes this topic now. Others go on; try later, charge no attempt
};

struct publish_result {
  publish_status status = publish_status::confirmed;
  std::string reason;  // why not, for people; empty if confirmed
};

class publisher {
 public:
  virtual ~publisher() = default;

  // One result per message, in order. Messages of one topic and key are stored in the order given, and once
  // one of them is not confirmed, no later one of its topic and key is. After a failure the batch may be
  // partly stored: whoever repeats it makes duplicates with the same id, which consumers skip. What is not
  // confirmed when the limits are reached is destination_failed. Thread-safe.
  virtual std::vector<publish_result> publish(std::span<const message> batch,
                                              const call_limits& limits = {}) = 0;
};

// Where a message stands in its partition. Only its driver knows what it means; everybody else compares
// positions of one partition, and finds them in the order of the messages.
class log_position {
 public:
  static constexpr std::size_t bytes_max = 16;

  log_position() = default;  // none; sorts before all others
  explicit log_position(std::string_view bytes);
  static log_position of(std::int64_t number);  // 0 or more; sorts as the numbers do

  std::string_view bytes() const { return {bytes_.data(), size_}; }
  bool empty() const { return size_ == 0; }
  std::optional<std::int64_t> number() const;  // if it has the bytes of one
  // For people: the number, if it is one; else 0x and hexadecimal digits.
  std::string text() const;

  friend std::strong_ordering operator<=>(const log_position& a, const log_position& b) {
    return a.bytes() <=> b.bytes();
  }
  friend bool operator==(const log_position& a, const log_position& b) { return a.bytes() == b.bytes(); }

 private:
  std::array<char, bytes_max> bytes_{};
  std::uint8_t size_ = 0;
};

// Names a delivery to the session of the subscription that it came from. A session ends when the partition is
// lost or the connection breaks, and its tags mean nothing afterwards: acknowledging one does nothing.
// `partition` tells a consumer which deliveries belong together; the rest is the driver's.
struct delivery_tag {
  std::uint32_t partition = 0;
  std::uint32_t session = 0;
  std::uint64_t number = 0;
  friend auto operator<=>(const delivery_tag&, const delivery_tag&) = default;
};

struct delivery {
  message content;
  delivery_tag tag;
  log_position at = {};  // none where the broker has no positions
  // Somebody may have had it before and not finished. Only from brokers without owners: where there are
  // owners, the consumer's own database knows better.
  bool redelivered = false;
  std::optional<timestamp> stored_at = std::nullopt;  // by the broker's clock; none: it does not say
};

// A partition that is ours from now on.
struct assigned_partition {
  std::uint32_t partition = 0;  // as in delivery_tag
  std::uint32_t session = 0;    // likewise: another one with every assignment
  std::string name;             // the same for every member, and after a restart
};

// To be taken in this order.
struct fetched {
  std::vector<std::uint32_t> revoked = {};        // not ours any more: forget their deliveries
  std::vector<assigned_partition> assigned = {};  // before their first delivery; never without owners
  std::vector<delivery> deliveries = {};
};

// How far a partition is done for good.
struct settled_partition {
  std::uint32_t partition = 0;  // as in delivery_tag
  std::string log;              // its name: the same for every member, and after a restart
  log_position through = {};    // nothing at or below it is delivered again
};

// One member of a consumer group. Used by one thread at a time.
class subscription {
 public:
  virtual ~subscription() = default;

  // Up to `messages_max` further messages; does not wait for any to arrive. Each message is fetched once per
  // owner; what was not acknowledged is delivered again to the next owner of its partition.
  virtual fetched fetch(std::size_t messages_max, const call_limits& limits = {}) = 0;

  // These are done and will not be needed again. Any order: an offset broker moves its position only
  // over what is acknowledged without a gap. Call it after the effects are committed. Partitions that
  // turn out to be lost are reported by the next fetch(). If it throws, the next call to the subscription
  // tries once more.
  virtual void acknowledge(std::span<const delivery_tag> done, const call_limits& limits = {}) = 0;

  // Somebody else has worked on this partition, or its deliveries cannot be used. Its session ends; if the
  // broker says that it is still or again ours, a later fetch() assigns it anew and delivers everything that
  // was not acknowledged. Otherwise nothing more comes of it. Never without owners.
  virtual void doubt(std::uint32_t partition) = 0;

  // Of every partition held, how far its acknowledgements are durable. Deduplication records are kept until
  // then. Nothing without positions.
  virtual std::vector<settled_partition> settled() const = 0;

  // Gives everything back at once, so that others need not wait for a lease to end.
  virtual void leave() noexcept = 0;

  virtual wakeup& arrivals() = 0;
};

// What a group had still to do at one moment (broker::backlog_of). What comes later does not count, so that
// it ends under any load.
class backlog {
 public:
  virtual ~backlog() = default;

  // True: the group has acknowledged all of it, and stays so. False: it has not, or nobody knows. A broker
  // may have lost the question; whoever has waited for long asks for another backlog.
  virtual bool is_done(const call_limits& limits = {}) = 0;
};

struct subscribe_options {
  std::string group;                // the consumer's name: each group gets every message once
  std::vector<std::string> topics;  // what it listens to; at least one
  // Called by fetch() before partitions may be given to others, on the caller's thread: the last moment to
  // acknowledge what is done. It may call acknowledge(). Not called for what is already lost.
  std::function<void()> before_revoked = {};
};

}  // namespace settle::inline v0

#pragma GCC visibility pop
