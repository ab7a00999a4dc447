// Publishing with confirms. One connection of its own, so that an alarm that stops publishers stops no
// consumer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "rabbitmq/confirms.hpp"
#include "rabbitmq/connection.hpp"
#include "rabbitmq/entrance.hpp"
#include "rabbitmq/topology.hpp"
#include "settle/driver/broker.hpp"

namespace settle::inline v0::rabbitmq {

class confirming_publisher final : public publisher {
 public:
  confirming_publisher(address to, const options& with) : to_(std::move(to)), with_(with) {}

  std::vector<publish_result> publish(std::span<const message> batch, const call_limits& limits) override;

 private:
  // Of one call: which messages it sends, and what has become of them.
  struct attempt {
    std::span<const message> batch;
    std::vector<publish_result>& results;
    std::vector<std::size_t> sent = {};  // indices, in the order of their numbers
    // Of the topics that are ours, where the check behind their messages stands among the confirmations.
    std::map<std::string, std::size_t, std::less<>> checks = {};
  };

  void publish_alone(std::span<const message> batch, const std::vector<std::size_t>& accepted,
                     std::vector<publish_result>& results, const limit& within);
  void connect(const limit& within);
  std::vector<std::size_t> open_topics(const attempt& of, const std::vector<std::size_t>& accepted,
                                       const limit& within);
  std::string send_and_await(attempt& of, const std::vector<std::size_t>& wanted, confirms& counted,
                             const limit& within);
  void send(attempt& of, std::size_t which, confirms& counted, const limit& within);
  void send_checks(attempt& of, confirms& counted, const limit& within);
  void take(const channel::news& said, confirms& counted);
  void judge(const attempt& of, const confirms& counted, const std::string& why);
  std::map<std::string, std::string, std::less<>> doubts(const attempt& of, const confirms& counted,
                                                         const std::string& why);
  void disconnect();
  std::string refusal_of(const message& m) const;
  const existing_exchange* existing(const std::string& topic) const;  // null: it is ours to make
  bool is_open(const std::string& topic) const;
  void open(const std::string& topic, const limit& within);

  address to_;
  options with_;
  std::mutex turn_;
  std::condition_variable_any turn_changed_;
  bool busy_ = false;
  // What follows belongs to whoever has the turn.
  std::unique_ptr<connection> on_;
  std::unique_ptr<topology> topology_;
  std::unique_ptr<channel> channel_;
  std::uint64_t numbers_ = 0;  // that the channel has given
  std::unique_ptr<entrance> entrance_;
  int slot_ = -1;  // the number of our connection, or of the last one
  std::set<std::string, std::less<>> found_;      // topics whose exchange others have made, and is there
  std::optional<refusal> closed_;                 // why the channel was closed in this call
  std::optional<std::size_t> message_bytes_max_;  // as the server has told when it refused one
};

}  // namespace settle::inline v0::rabbitmq
