// Looking into a broker without taking part in it: which topics and groups there are, how far behind each
// group is, and the messages themselves where the broker can be read from a place.
//
//   if (auto* inside = broker->inspection())
//     for (const auto& one : inside->groups()) std::cout << one.group << " lags by " << one.lag.value_or(0);
//
// `settle status`, `tail`, `verify`, `group list` and the gauges of settled show what they find here, and
// nobody but a broker's driver reads its tables. An interface for drivers: it may change with every release.
//
// Nothing here joins a group, acknowledges or changes anything. Thread-safe. Errors are those of the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "settle/driver/broker.hpp"
#include "settle/wakeup.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct inspected_topic {
  std::string name;
  std::int64_t partitions = 0;           // 0: the broker has none
  std::optional<std::int64_t> messages;  // that it keeps; none: it does not say
};

// Messages of one partition that a group has not acknowledged.
struct partition_lag {
  std::int64_t partition = 0;
  std::int64_t lag = 0;
};

// One group on one topic.
struct inspected_group {
  std::string group;
  std::string topic;
  std::int64_t members_alive = 0;
  std::optional<std::int64_t> lag;  // messages that it has not acknowledged; none: the broker does not say
  std::optional<timestamp> oldest, newest;  // when the first and the last of them came, if that was asked for
  bool lag_has_what_members_hold = true;    // false: the broker counts only what it has not handed out
  std::vector<partition_lag> partitions = {};  // in their order; none: the broker does not say
};

struct inspect_groups {
  std::size_t groups_max = std::numeric_limits<std::size_t>::max();
  bool with_times = false;  // the embedded broker looks at every waiting message for that
};

struct read_limits {
  std::size_t messages_max = 256;
  std::size_t bytes_max = std::size_t{1} << 20;  // of payloads; a message that is larger comes alone
};

struct placed_message {
  log_position place;
  message content;
};

// What scan() tells of a message. The texts live until its callback returns.
struct kept_message {
  std::string_view id;
  std::string_view topic;
  std::span<const std::string_view> waiting_for;  // groups of its topic that have not acknowledged it
};

// A broker that keeps its messages and can be read from any place. An acknowledging broker cannot.
class broker_log {
 public:
  virtual ~broker_log() = default;

  // The messages of a topic behind a place, in the order in which the broker keeps them; between partitions
  // of a broker that has none there, by their times. None for a topic that does not exist.
  virtual std::vector<placed_message> read(const std::string& topic, const log_position& after,
                                           const read_limits& limits) = 0;

  // The place behind which the last `messages` of the topic lie, or all of them, if there are fewer; with 0
  // the end, behind which the next one will be.
  virtual log_position before_last(const std::string& topic, std::size_t messages) = 0;

  // Everything that is kept: first each group with each topic that it listens to, then each message. As of
  // one moment; or the groups are older than the messages, so that what counts as acknowledged is.
  virtual void scan(const std::function<void(std::string_view group, std::string_view topic)>& group,
                    const std::function<void(const kept_message&)>& kept) = 0;

  // Wakes when messages may have come.
  virtual std::unique_ptr<wakeup> arrivals() = 0;
};

class broker_inspection {
 public:
  virtual ~broker_inspection() = default;

  // What people call it: a file, a server. Without secrets.
  virtual std::string name() const = 0;

  // Why it takes no messages now, and what to do about it; empty: it does. Throws if it does not answer.
  virtual std::string trouble() {
    topics(1);
    return {};
  }

  // What its content takes; none: it does not say.
  virtual std::optional<std::int64_t> stored_bytes() = 0;

  // In the order in which they were first used, or by name where the broker does not know that; the first
  // `topics_max`.
  virtual std::vector<inspected_topic> topics(
      std::size_t topics_max = std::numeric_limits<std::size_t>::max()) = 0;

  // By group and topic.
  virtual std::vector<inspected_group> groups(const inspect_groups& wanted = {}) = 0;

  // Its messages; null: this broker cannot be read from a place.
  virtual broker_log* log() { return nullptr; }
};

}  // namespace settle::inline v0

#pragma GCC visibility pop
