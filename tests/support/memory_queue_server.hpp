// A broker in memory of the kind that hands out single messages: every group has one queue, and whoever of
// its members asks gets the next message. There are no owners and no positions, and messages of one key go to
// different members. What was handed out and not acknowledged comes again, at the head of the queue, when the
// session that got it ends: closed, or silent for longer than the session timeout.
//
// A group gets what is published while it exists.
#pragma once

#include <string_view>

#include "support/memory_server.hpp"

namespace settle::test {

class memory_queue_server final : public memory_server {
 public:
  explicit memory_queue_server(duration session_timeout = std::chrono::seconds(9))
      : session_timeout_(session_timeout) {}

  broker_traits traits() const override;
  void forget_acknowledgements(const std::string& group) override;

  // As the first subscription would do it: from now on its messages are kept.
  void declare(const std::string& group, const std::vector<std::string>& topics);
  // The connections of all members break. They connect again by themselves.
  void break_sessions(const std::string& group);
  // Of each of the next messages that are handed out, another copy follows.
  void deliver_twice(int messages);

 private:
  friend class memory_queue_subscription;
  friend class memory_queue_backlog;
  using session_id = std::uint32_t;

  struct queued {
    stored_message what;
    bool redelivered = false;
  };
  struct handed_out {
    queued what;
    std::uint64_t place = 0;
    session_id to = 0;
  };
  struct group_state {
    shared_map<shared_text, bool> topics;
    shared_map<std::uint64_t, queued> waiting;      // by place: who comes back has a lower one
    shared_map<std::uint64_t, handed_out> pending;  // by delivery number
    shared_map<std::uint64_t, queued> done;         // by place
    shared_map<session_id, timestamp> sessions;     // last seen
  };
  struct state {
    session_id sessions = 0;
    std::uint64_t places = 0;
    std::uint64_t deliveries = 0;
    int copies = 0;
    shared_map<shared_text, group_state> groups;
  };

  void store(const message& what, timestamp now, int partitions) override;
  std::unique_ptr<subscription> subscribe(const environment& env, const subscribe_options& options,
                                          int partitions) override;
  std::unique_ptr<backlog> backlog_of(const environment& env, const std::string& group,
                                      const std::vector<std::string>& topics) override;

  // What a member's connection asks. All under the mutex.
  session_id connect(const std::string& group, timestamp now);
  bool is_connected(const std::string& group, session_id who, timestamp now);  // and notes that it was seen
  delivery hand_out(group_state& of, session_id who);
  void acknowledge(const std::string& group, const delivery_tag& done);
  void disconnect(group_state& of, session_id who);

  group_state& group(const std::string& name);

  duration session_timeout_;
  shared_ptr_of<state> state_ = make_in_shared_memory<state>();
};

}  // namespace settle::test
