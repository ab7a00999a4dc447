// RabbitMQ as the broker.
//
//   auto broker = settle::rabbitmq::open("amqp://settle:secret@mq.internal:5672/shop");
//   settle::relay relay(*db, broker->publishing());
//   settle::consumer warehouse(*db, *broker, {.name = "warehouse"});
//
// What it makes there. A topic is a durable direct exchange of its name. A message goes to one of 256 lanes
// by its key, and the lane is the routing key. A group is a fixed number of durable quorum queues that share
// the lanes, each with a single active consumer; so messages of one key go through one queue to one member of
// the group at a time, in their order. A topic that ends in ".dlq" has a durable queue of its own name as
// well, so that dead letters are kept before anybody asks for them.
//
// What it promises. A message is confirmed when it was routed to every group, also while somebody deletes the
// exchange, and a majority of the nodes of each queue has it on disk. A group
// gets what is published after it was created; whatever is published to a topic without any group is not
// confirmed but held by the relay (see `unrouted`). A message is acknowledged after its effects are
// committed, and never put back, which would change the order: what was delivered and not acknowledged comes
// again, first and in order, when its member's connection ends. The order of a key can break where somebody
// gives the queues a policy that rejects messages (overflow reject-publish), and at the moment at which a
// topic gets its first group.
//
// A server that is away or has raised a memory or disk alarm is a retryable error and costs no attempt. A
// queue that somebody has deleted is an error until the group is created anew: what was published meanwhile
// is lost to it, and nobody should overlook that.
//
// Queues and exchanges of others are used as they are, if they are named in the options; then what the server
// promises for them holds, and no more.
//
// Threads: any number for broker and publisher; a subscription is used by one at a time. Errors:
// settle::error; destination_unavailable is retryable. Passwords are in no error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "settle/broker.hpp"
#include "settle/message_mapping.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::rabbitmq {

// What becomes of a message of a topic that no group listens to.
enum class unrouted {
  hold,     // it is not confirmed: the relay keeps it and tries again
  discard,  // it is confirmed, counted (settle_rabbitmq_discarded_total) and gone
};

// A queue that somebody else has made, read by a group of ours as it is. One member at a time reads it, and
// nobody else may: it is asked for exclusively. What the queue drops, what it is bound to and whether a key
// keeps its order on the way to it is up to whoever made it. Headers that are no CloudEvents come as
// extensions, their names in lower-case letters and digits ("x-death" as xdeath), their lists and tables as
// JSON.
struct existing_queue {
  std::string queue;             // its name, without the prefix below
  std::string group;             // the consumer that reads it
  std::string topic;             // what its messages are called there
  message_mapping mapping = {};  // where their attributes are; a message-id is the id without being asked for
};

// An exchange that somebody else has made, and that events of a topic go to as they are.
struct existing_exchange {
  std::string topic;
  std::string exchange;                // without the prefix below; empty: the default exchange, of queues
  std::string routing_key = "{type}";  // with {topic}, {type}, {key}, {subject} and {lane}
};

struct options {
  environment env = {};
  // How long a new connection may take, name resolution not counted. Calls with limits of their own end by
  // these as well.
  duration connect_timeout = std::chrono::seconds(5);
  // Both sides say something at least so often; a line that is silent for twice as long is taken for dead.
  // Whole seconds, 1 to 600.
  duration heartbeat = std::chrono::seconds(10);
  // Queues of a group and topic, so members of it that can work at the same time. Fixed when the group is
  // created; who asks for another number later is refused. 1 to 256.
  int queues = 8;
  // Messages that the server sends ahead of their acknowledgements, for each queue. 1 to 65535.
  int prefetch = 256;
  // Put before the name of every exchange and queue, for many that share one virtual host.
  std::string prefix = {};
  unrouted without_groups = unrouted::hold;
  // How often members look whether others have come, so that each gets its part of the queues.
  duration balance_every = std::chrono::seconds(3);
  // After a lost acknowledgement a message comes again, as soon as somebody of its group runs. Records that
  // recognise copies are kept at least so long.
  duration redelivers_for = std::chrono::hours(24);
  // For amqps://: the authorities that are trusted (empty: those of the system), and who we are, if the
  // server asks. Files in PEM format.
  std::string ca_file = {};
  std::string certificate_file = {};
  std::string key_file = {};
  // What others have made.
  std::vector<existing_queue> existing_queues = {};
  std::vector<existing_exchange> existing_exchanges = {};
};

// amqp://[user[:password]@]host[:port][/vhost] or amqps://…, percent-encoded where needed; IPv6 in brackets.
// Without a virtual host it is "/". Nothing connects until the first call does. Throws invalid_argument if
// the URL cannot be read or an option is out of bounds.
std::unique_ptr<broker> open(const std::string& url, const options& opts = {});

}  // namespace settle::inline v0::rabbitmq

#pragma GCC visibility pop
