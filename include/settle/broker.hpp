// A message broker as users see it: something that relays publish to and consumers read from.
//
//   auto broker = settle::sqlite::open_broker("messages.db");
//   settle::relay relay(*db, broker->publishing());
//   settle::consumer warehouse(*db, *broker, {.name = "warehouse"});
//
// What a broker has to do is in settle/driver/broker.hpp, for those who write a driver.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "settle/environment.hpp"
#include "settle/event.hpp"

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

class publisher;
class subscription;
struct subscribe_options;
struct broker_traits;
struct call_limits;
class backlog;

class broker_inspection;  // settle/driver/broker_inspection.hpp

class broker {
 public:
  virtual ~broker() = default;

  virtual publisher& publishing() = 0;
  virtual std::unique_ptr<subscription> subscribe(const subscribe_options& options) = 0;
  // Does not change while the broker lives.
  virtual broker_traits traits() const = 0;

  // Makes a group on these topics before its first consumer runs, so that what is published from now on is
  // kept for it. What is there already stays as it is.
  virtual void create_group(const std::string& group, const std::vector<std::string>& topics);
  // Removes a group from a topic, and everything that waits there for it. Throws invalid_argument if there is
  // no such group, while one of its members is alive, and if this broker cannot do it.
  virtual void remove_group(const std::string& group, const std::string& topic);

  // Everything that the broker has for this group on these topics now, and that the group has not
  // acknowledged yet, whoever of its members has it. Throws destination_unavailable. Null: this broker cannot
  // tell.
  virtual std::unique_ptr<backlog> backlog_of(const std::string& group,
                                              const std::vector<std::string>& topics,
                                              const call_limits& limits);

  // Topics, groups and their lag, and reading messages without a group. Lives as long as the broker. Null:
  // this one cannot be looked into.
  virtual broker_inspection* inspection() { return nullptr; }
};

}  // namespace settle::inline v0

#pragma GCC visibility pop
