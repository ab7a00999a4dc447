// A member of a consumer group. A partition that is assigned to it is read when it is known where the group
// stands in it; that makes a session.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "broker/ack_tracker.hpp"
#include "kafka/group_mark.hpp"
#include "kafka/membership.hpp"
#include "settle/driver/broker.hpp"

namespace settle::inline v0::kafka {

class group_subscription final : public subscription, wakeup {
 public:
  group_subscription(cluster& at, const subscribe_options& wanted);
  ~group_subscription() override;

  fetched fetch(std::size_t messages_max, const call_limits& limits) override;
  void acknowledge(std::span<const delivery_tag> done, const call_limits& limits) override;
  void doubt(std::uint32_t partition) override;
  std::vector<settled_partition> settled() const override;
  void leave() noexcept override;
  wakeup& arrivals() override { return *this; }

 private:
  struct session {
    std::uint32_t number;
    std::string mark;
    ack_tracker tracker;  // of offsets
  };
  struct partition_state {
    std::uint32_t tag;
    std::optional<session> open = {};
    limit::clock::time_point retry_at = {};  // while messages are missing
  };

  void connect(const limit& within);
  bool has_sessions() const;
  void introduce(const limit& within);
  void take_events();
  void take(message_handle one);
  void hold_back_if_full();
  void begin_sessions(const limit& within);
  std::vector<committed_offset> positions(const limit& within);
  bool begin_session(const committed_offset& at, const limit& within);  // false: not yet
  void read_on(const std::vector<place>& these);
  void report_gap(const place& in, const start& found);
  void end_session(partition_state& of, bool tell);
  void drop_waiting(std::uint32_t tag);
  void lose_topic(const std::string& topic);
  void lose_everything(const char* why);
  void commit_done(const limit& within);
  bool lose_logs_that_are_gone(const std::vector<committed_offset>& moved, const limit& within);
  std::vector<delivery> deliver(std::size_t messages_max);
  std::uint32_t tag_of(const place& at) const;
  void assigned(const std::vector<place>& these);
  void revoked(const std::vector<place>& these, bool lost);
  duration until_the_next_look() const;
  void wait(duration at_most, std::stop_token stop) override;

  struct waiting_message {
    std::uint32_t tag;
    message_handle content;
  };

  cluster& at_;
  std::string group_;
  std::vector<std::string> topics_;       // as the caller calls them
  std::vector<std::string> full_topics_;  // with the prefix
  std::function<void()> before_revoked_;
  int arrived_;  // an eventfd that the library writes to
  std::map<place, partition_state> held_;
  std::deque<waiting_message> waiting_;
  std::size_t waiting_bytes_ = 0;
  bool holds_back_ = false;
  bool is_unsettled_ = false;  // a session is to begin, and has not yet
  std::vector<std::uint32_t> revoked_;
  std::vector<assigned_partition> assigned_;
  std::exception_ptr thrown_;  // by before_revoked, inside of the library
  limit::clock::time_point look_at_names_at_ = {};
  std::optional<std::string> down_;
  std::uint32_t sessions_ = 0;
  std::unique_ptr<membership> member_;
};

}  // namespace settle::inline v0::kafka
