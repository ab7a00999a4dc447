// Where the attributes of messages are found that others publish and that are no CloudEvents.
//
//   settle::message_mapping mapping;
//   mapping.id = {"{property:message-id}", "{payload:/orderId}-{header:event}"};
//   mapping.type = {"{header:event}"};
//   mapping.key = {"{payload:/orderId}"};
//
// Each attribute has templates, and the first whose parts are all there is taken. The parts:
//
//   {property:NAME}     a property of the protocol. RabbitMQ: message-id, type, correlation-id, app-id,
//                       timestamp, exchange, routing-key. Kafka: key, topic, partition, offset, timestamp
//   {header:NAME}       a header
//   {payload:/a/0/b}    a place in a payload that is JSON (RFC 6901): text, a number, true or false
//
// Everything else stands for itself. Only what a message does not say as a CloudEvent is looked for. A
// message that has no id after that becomes a dead letter (message_id_missing): nobody could tell its copies
// from new ones.
#pragma once

#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct message_mapping {
  std::vector<std::string> id = {};
  std::vector<std::string> source = {};
  std::vector<std::string> type = {};
  std::vector<std::string> key = {};
  std::vector<std::string> subject = {};
  std::vector<std::string> time = {};  // RFC 3339, or seconds or milliseconds since 1970
};

}  // namespace settle::inline v0

#pragma GCC visibility pop
