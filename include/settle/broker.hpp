// What Settle asks of a message broker: confirmed publishes, and deliveries that are acknowledged after
// the work is done. The embedded broker, offset brokers (Kafka) and acknowledging brokers (RabbitMQ)
// all fit; tests/conformance/broker_suite.hpp says when an implementation is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settle/event.hpp"
#include "settle/wakeup.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

// A CloudEvents 1.0 message. `extensions` hold everything beyond the named attributes:
// correlationid, causationid, traceparent, tracestate, and the publisher's own headers; from relays also
// sequence, a number that grows with every event of its database; settleplace, text that sorts as first
// deliveries come, where numbers do not; and settledatabase, if `source` does not name that database.
struct message {
  std::string id;      // the event id; with `source` it identifies the event
  std::string source;  // which database it was committed in
  std::string type;
  std::string topic;
  std::string key;      // partitionkey; may be empty
  std::string subject;  // the aggregate, "order/42" or "42"; may be empty
  std::string content_type;
  timestamp time{};  // when it was published in its transaction
  attributes extensions;
  std::string payload;
};

// All attributes of a message in a fixed order, empty ones left out. Drivers map them to headers with the
// prefix of their protocol. Every name is valid in CloudEvents, and none stands there twice: an extension
// that is called like an attribute of the message itself gets "header" in front.
std::vector<std::pair<std::string, std::string>> cloudevents_attributes(const message& of);

enum class publish_status {
  confirmed,           // the broker has it durably
  destination_failed,  // nobody's fault but the destination's: try again later, charge no attempt
  message_rejected,    // this message will never be accepted as it is
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
  // partly stored: whoever repeats it makes duplicates with the same id, which consumers skip. Thread-safe.
  virtual std::vector<publish_result> publish(std::span<const message> batch) = 0;
};

// Names a delivery to its subscription. Opaque to everyone else.
struct delivery_tag {
  std::uint32_t partition = 0;
  std::int64_t position = 0;
  friend auto operator<=>(const delivery_tag&, const delivery_tag&) = default;
};

// Proof of who may process a partition. A consumer checks it inside the transaction of its effects,
// so that an owner that was paused and replaced cannot write any more. `partition` is empty on
// brokers that hand out single messages instead of partitions.
struct partition_fence {
  std::string partition;
  std::int64_t epoch = 0;
  friend bool operator==(const partition_fence&, const partition_fence&) = default;
};

struct delivery {
  message content;
  delivery_tag tag;
  partition_fence fence;
  std::optional<timestamp> stored_at = std::nullopt;  // by the broker's clock; none: it does not say
};

struct fetched {
  std::vector<delivery> deliveries;
  std::vector<std::uint32_t> revoked;  // partitions that are not ours any more: forget their deliveries
};

// How far a partition is done for good.
struct settled_partition {
  std::uint32_t partition = 0;  // as in delivery_tag
  std::string log;              // its name: the same for every member, and after a restart
  std::int64_t position = 0;    // nothing at or below it is delivered again
};

// One member of a consumer group. Used by one thread at a time.
class subscription {
 public:
  virtual ~subscription() = default;

  // Up to `messages_max` further messages; never blocks. Each message is fetched once per owner; what
  // was not acknowledged is delivered again to the next owner of its partition.
  virtual fetched fetch(std::size_t messages_max) = 0;

  // These are done and will not be needed again. Any order: an offset broker moves its position only
  // over what is acknowledged without a gap. Call it after the effects are committed. Partitions that
  // turn out to be lost are reported by the next fetch().
  virtual void acknowledge(std::span<const delivery_tag> done) = 0;

  // Of every partition held, how far its acknowledgements are durable. Deduplication records are kept
  // until then.
  virtual std::vector<settled_partition> settled() const = 0;

  // Gives everything back at once, so that others need not wait for a lease to end.
  virtual void leave() noexcept = 0;

  virtual wakeup& arrivals() = 0;
};

struct subscribe_options {
  std::string group;                // the consumer's name: each group gets every message once
  std::vector<std::string> topics;  // what it listens to; at least one
};

class broker_inspection;  // settle/driver/broker_inspection.hpp

class broker {
 public:
  virtual ~broker() = default;
  virtual publisher& publishing() = 0;
  virtual std::unique_ptr<subscription> subscribe(const subscribe_options& options) = 0;

  // Topics, groups and their lag, and reading messages without a group. Lives as long as the broker. Null:
  // this one cannot be looked into.
  virtual broker_inspection* inspection() { return nullptr; }
};

}  // namespace settle

#pragma GCC visibility pop
