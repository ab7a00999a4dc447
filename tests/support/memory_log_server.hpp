// A broker in memory of the kind that has logs: topics have partitions, a partition belongs to one member of
// a group at a time, and a group moves its position over what it has done. Members whose fetches stop for
// longer than the session timeout are taken for dead.
//
// A rebalance is cooperative: who is to give a partition up is asked when it fetches, and the next owner
// waits for that. Positions are 16 bytes that no number of 64 bits can hold.
#pragma once

#include <string_view>

#include "support/memory_server.hpp"

namespace settle::test {

class memory_log_server final : public memory_server {
 public:
  explicit memory_log_server(duration session_timeout = std::chrono::seconds(9))
      : session_timeout_(session_timeout) {}

  broker_traits traits() const override;
  void forget_acknowledgements(const std::string& group) override;

  // Every member is asked to give up all that it has, and then everything is dealt out anew, in another way.
  void rebalance(const std::string& group);
  // All members are taken for dead although they live; what they had is free at once.
  void expel_members(const std::string& group);
  // From now on, until told otherwise: members that are taken for dead are not told. They read on, and what
  // they acknowledge is ignored.
  void keep_zombies(bool keep = true);

 private:
  friend class memory_log_subscription;
  friend class memory_log_backlog;
  using member_id = std::uint64_t;

  struct place {
    std::string topic;
    std::uint32_t partition = 0;
    friend auto operator<=>(const place&, const place&) = default;
  };
  struct holding {
    place at;
    std::uint64_t generation = 0;  // another one with every owner
    std::uint64_t committed = 0;   // how many messages are done
  };
  struct answer {
    bool known = true;  // false: the member was taken for dead
    bool told = true;   // false: but it must not find out
    std::vector<holding> held;
    std::vector<place> give_up;
    bool may_take = false;
  };

  struct share {
    member_id owner = 0;  // 0: nobody
    std::uint64_t generation = 0;
    std::uint64_t committed = 0;
    bool recalled = false;
  };
  struct member {
    shared_list<shared_text> topics;
    timestamp last_seen;
  };
  struct group_state {
    std::size_t rotation = 0;
    std::uint64_t generations = 0;
    shared_map<member_id, member> members;
    shared_map<shared_text, shared_map<std::uint32_t, share>> shares;
  };
  using log = shared_list<stored_message>;
  struct state {
    bool keeps_zombies = false;
    member_id members = 0;
    shared_map<shared_text, shared_list<log>> topics;  // partitions
    shared_map<shared_text, group_state> groups;
  };

  void store(const message& what, timestamp now, int partitions) override;
  std::unique_ptr<subscription> subscribe(const environment& env, const subscribe_options& options,
                                          int partitions) override;
  std::unique_ptr<backlog> backlog_of(const environment& env, const std::string& group,
                                      const std::vector<std::string>& topics) override;

  // What a member's connection asks. All under the mutex.
  member_id join(const subscribe_options& options, timestamp now, int partitions);
  answer heartbeat(const std::string& group, member_id who, timestamp now);
  void take(const std::string& group, member_id who);
  void give_up(const std::string& group, member_id who, const std::vector<place>& places);
  bool commit(const std::string& group, member_id who, timestamp now,
              const holding& through);  // false: refused
  void leave(const std::string& group, member_id who);
  std::vector<stored_message> read(const place& at, std::uint64_t after, std::size_t messages_max);

  shared_list<log>& topic(std::string_view name, int partitions);
  group_state& group(const std::string& name);
  void bury_silent(group_state& of, timestamp now);
  void expel(group_state& of, member_id who);
  member_id wanted_owner(const group_state& of, std::string_view topic, std::uint32_t partition) const;

  duration session_timeout_;
  shared_ptr_of<state> state_ = make_in_shared_memory<state>();
};

}  // namespace settle::test
