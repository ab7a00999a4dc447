// Kafka as the broker.
//
//   auto broker = settle::kafka::open("kafka://k1.internal:9092,k2.internal:9092");
//   settle::relay relay(*db, broker->publishing());
//   settle::consumer warehouse(*db, *broker, {.name = "warehouse"});
//
// What it makes there. A topic is a topic of the same name, created when it is first used (see
// `missing_topics`). A message goes to a partition by its key, as Kafka's own Java client does it; those
// without a key go anywhere. A group is a consumer group of the same name.
//
// What it promises. A message is confirmed when all replicas in sync have it; how many that are at least is
// min.insync.replicas of the topic, and durable means what it means there. The order of a key is that of the
// publish calls, also after failures, as long as its topic keeps its number of partitions. A message is
// acknowledged, that is its offset committed, after its effects are. A group that is new begins with the
// oldest message.
//
// No silent reset. Where a group's offset lies outside the log, because retention has passed it or the topic
// was made anew, messages are missing: the partition is held, with an error in the log and in
// settle_kafka_gaps_total, unless `on_gap` says otherwise. A topic that was deleted and created again is
// another log to Settle, so its low offsets are not taken for old ones.
//
// A server that is away is a retryable error and costs no attempt. A topic that does not exist, or that we
// may not write to, holds its own messages and no others. A message that the server finds too large is
// rejected.
//
// Threads: any number for broker and publisher; a subscription is used by one at a time. Errors:
// settle::error; destination_unavailable is retryable. Passwords are in no error.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "settle/broker.hpp"
#include "settle/message_mapping.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::kafka {

// What becomes of a topic that is used and does not exist.
enum class missing_topic {
  create,  // it is made, with `partitions` and `replication`
  hold,    // its messages are held by the relay until somebody makes it; subscribing to it is an error
};

// What becomes of a partition in which messages are missing.
enum class gap {
  stop,            // it is held until somebody moves the group's offset
  continue_after,  // the group goes on with the oldest message that there is
};

// A topic that somebody else has made, used as it is: never created, and without the prefix below. Messages
// on it need not be CloudEvents. Headers that are none come as extensions, their names in lower-case letters
// and digits.
struct existing_topic {
  std::string name;              // in Kafka
  std::string topic;             // what its messages are called here
  message_mapping mapping = {};  // where their attributes are
};

// The layout of Debezium's outbox event router: the header `id` is the event's id, the message's key is that
// of the aggregate, and the type is in a header `type` or `eventType`, if the connector was told to write one
// (table.fields.additional.placement = type:header:eventType).
message_mapping debezium_outbox();

struct options {
  environment env = {};
  // How long the first answer of a server may take. Calls with limits of their own end by these as well.
  duration connect_timeout = std::chrono::seconds(5);
  missing_topic missing_topics = missing_topic::create;
  // Of topics that are created here: partitions, so members of a group that can work at the same time; and
  // copies, of which 0 leaves the choice to the cluster. 1 to 1024, and 0 to 100.
  int partitions = 8;
  int replication = 0;
  // A member whose process is gone is replaced after so long; the server may allow less or more. And a
  // member that has not fetched for so long is taken for dead, although its process lives.
  duration session_timeout = std::chrono::seconds(10);
  duration silence_max = std::chrono::minutes(5);
  // Where it is set, a member that comes back within the session timeout finds its partitions waiting
  // (static membership). No two members of a group may have the same one.
  std::string instance_id = {};
  gap on_gap = gap::stop;
  // A larger message, attributes included, is rejected without asking the server, whose own limit may be
  // lower. 1,000 to 1,000,000,000.
  std::size_t message_bytes_max = 1'000'000;
  // Messages that are read ahead of fetch(), for each subscription. At least 1,000.
  std::size_t read_ahead_bytes = std::size_t{16} << 20;
  // Put before the name of every topic and group, for many that share one cluster.
  std::string prefix = {};
  // What others have made.
  std::vector<existing_topic> existing_topics = {};
  // Every connection goes to this host:port, instead of to the addresses that the servers give of
  // themselves. For one server behind a tunnel or a forwarded port.
  std::string through = {};
  // For URLs with a user: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
  std::string sasl_mechanism = "SCRAM-SHA-512";
  // For kafkas://: the authorities that are trusted (empty: those of the system), and who we are, if the
  // server asks. Files in PEM format.
  std::string ca_file = {};
  std::string certificate_file = {};
  std::string key_file = {};
  std::string key_password = {};  // that the key is encrypted with; in no error
  // Further settings of librdkafka, by its own names, all of which begin with ssl. or sasl.
  std::vector<std::pair<std::string, std::string>> security = {};
};

// kafka://[user:password@]host[:port][,host[:port]…], or kafkas://… for TLS; percent-encoded where needed.
// Without a port it is 9092. Nothing connects until the first call does. Throws invalid_argument if the URL
// cannot be read or an option is out of bounds.
std::unique_ptr<broker> open(const std::string& url, const options& opts = {});

}  // namespace settle::inline v0::kafka

#pragma GCC visibility pop
