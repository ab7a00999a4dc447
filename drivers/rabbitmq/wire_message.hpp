// A message as it is on the line: properties, headers, a body. CloudEvents in binary mode: every attribute is
// a header "cloudEvents_<name>" (and read as "cloudEvents:<name>" too), but for datacontenttype, which is the
// content type; message-id is the event's id.
#pragma once

#include <amqp.h>
#include <amqp_framing.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rabbitmq/frames.hpp"
#include "settle/broker.hpp"
#include "wire/mapping.hpp"

namespace settle::inline v0::rabbitmq {

// As it came. Headers with lists and tables have them as JSON.
struct wire_message {
  std::string content_type = {};
  std::string message_id = {};
  named_texts properties = {};  // those that we do not write: type, correlation-id, app-id, timestamp
  named_texts headers = {};
  std::string body = {};

  const std::string* header(std::string_view name) const;
};

// Which message of a publisher it is: what the server returns carries no number.
inline constexpr std::string_view number_header = "settle-number";
// A message that is no event: whoever gets it is the active consumer of the queue.
inline constexpr std::string_view probe_header = "settle-probe";
// Another one: it is answered when everything before it is done (milestones.hpp).
inline constexpr std::string_view milestone_header = "settle-milestone";
inline constexpr std::string_view passed_header = "settle-milestone-passed";  // the answer

// Without the body.
wire_message read_properties(const amqp_basic_properties_t& of);

// What the message says of itself; `topic` is known from where it was found.
message read_message(wire_message&& from, const std::string& topic);
// The same of a message that others have published. Its properties know where it was published to.
message read_foreign_message(wire_message&& from, const std::string& topic, const mapper& by);

// The properties of a message to be sent. Lives as long as the message and itself.
class outgoing {
 public:
  outgoing(const message& what, std::uint64_t number);
  outgoing(const outgoing&) = delete;
  outgoing& operator=(const outgoing&) = delete;
  amqp_basic_properties_t& properties() { return properties_; }

 private:
  std::vector<std::pair<std::string, std::string>> attributes_;
  table headers_;
  amqp_basic_properties_t properties_{};
};

}  // namespace settle::inline v0::rabbitmq
