#include "support/memory_log_server.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/hash.hpp"
#include "broker/ack_tracker.hpp"

namespace settle::test {
namespace {

constexpr std::uint32_t partition_bits = 16;

// Sorts as the numbers do. The bytes in front contain what breaks text, signed numbers and C strings.
log_position position_of(std::uint64_t number) {
  std::string bytes("\xff\x00\x7f\x80 log", 8);
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return number == 0 ? log_position() : log_position(bytes);
}

}  // namespace

// The client's side: what a driver keeps in its process.
class memory_log_subscription final : public subscription {
 public:
  memory_log_subscription(memory_log_server& server, const environment& env, subscribe_options options,
                          int partitions)
      : server_(server),
        env_(env),
        options_(std::move(options)),
        partitions_(partitions),
        arrivals_(server.common_->changes) {
    with_fault_points(env_, "broker.subscribe", [&] { join(); });
  }

  fetched fetch(std::size_t messages_max, const call_limits& limits) override {
    server_.reach(env_, limits);
    commit_done();
    refresh();
    fetched out;
    out.revoked = std::exchange(revoked_, {});
    out.assigned = std::exchange(assigned_, {});
    out.deliveries = deliver(messages_max);
    return out;
  }

  void acknowledge(std::span<const delivery_tag> done, const call_limits& limits) override {
    for (const auto& tag : done) {
      const auto found = held_.find(tag.partition);
      if (found != held_.end() && found->second.session == tag.session)
        found->second.tracker.done(static_cast<std::int64_t>(tag.number));
    }
    server_.reach(env_, limits);
    commit_done();
  }

  // The server knows whose it is: the next fetch() asks, and takes what it does not have.
  void doubt(std::uint32_t partition) override { held_.erase(partition); }

  std::vector<settled_partition> settled() const override {
    std::vector<settled_partition> all;
    for (const auto& [number, one] : held_)
      all.push_back({number, name_of(one.at),
                     position_of(static_cast<std::uint64_t>(one.tracker.committed_through()))});
    return all;
  }

  void leave() noexcept override {
    try {
      server_.reach(env_, {});
      commit_done();
      with_fault_points(env_, "broker.leave", [&] {
        const std::scoped_lock lock(server_.common_->mutex);
        server_.leave(options_.group, id_);
      });
      held_.clear();
    } catch (const std::exception&) {  // the server finds out by itself
    }
  }

  wakeup& arrivals() override { return arrivals_; }

 private:
  using place = memory_log_server::place;
  struct partition_state {
    place at;
    std::uint64_t generation;
    std::uint32_t session;
    ack_tracker tracker;
  };

  static std::string name_of(const place& at) { return at.topic + "/" + std::to_string(at.partition); }

  std::uint32_t number_of(const place& at) const {
    const auto found = std::ranges::find(options_.topics, at.topic);
    return static_cast<std::uint32_t>(found - options_.topics.begin()) << partition_bits | at.partition;
  }

  void join() {
    const std::scoped_lock lock(server_.common_->mutex);
    id_ = server_.join(options_, env_.now(), partitions_);
  }

  memory_log_server::answer heartbeat() {
    const std::scoped_lock lock(server_.common_->mutex);
    return server_.heartbeat(options_.group, id_, env_.now());
  }

  // Gives up and takes what the server wants. It ends with what it has in common with the server.
  void refresh() {
    auto told = heartbeat();
    if (!told.known) {
      if (!told.told && !held_.empty()) return;  // a zombie
      lose_all();
      join();
      told = heartbeat();
    }
    if (!told.give_up.empty()) {
      if (options_.before_revoked) options_.before_revoked();
      const std::scoped_lock lock(server_.common_->mutex);
      server_.give_up(options_.group, id_, told.give_up);
    }
    if (!told.give_up.empty()) told = heartbeat();
    if (told.may_take) {
      with_fault_points(env_, "broker.lease", [&] {
        const std::scoped_lock lock(server_.common_->mutex);
        server_.take(options_.group, id_);
      });
      told = heartbeat();
    }
    agree_with(told.held);
  }

  void agree_with(const std::vector<memory_log_server::holding>& owned) {
    std::erase_if(held_, [&](const auto& mine) {
      const bool still = std::ranges::any_of(owned, [&](const auto& one) {
        return one.at == mine.second.at && one.generation == mine.second.generation;
      });
      if (!still) revoked_.push_back(mine.first);
      return !still;
    });
    for (const auto& one : owned) {
      const auto number = number_of(one.at);
      if (held_.contains(number)) continue;
      const auto session = ++sessions_;
      held_.emplace(number, partition_state{one.at, one.generation, session,
                                            ack_tracker(static_cast<std::int64_t>(one.committed))});
      assigned_.push_back({number, session, name_of(one.at)});
    }
  }

  void lose_all() {
    for (const auto& [number, unused] : held_) revoked_.push_back(number);
    held_.clear();
  }

  // What fails here is tried again by the next call: the trackers remember.
  void commit_done() {
    std::vector<std::pair<std::uint32_t, std::int64_t>> moved;
    for (const auto& [number, one] : held_)
      if (one.tracker.has_news()) moved.emplace_back(number, one.tracker.done_through());
    if (moved.empty()) return;
    std::vector<std::uint32_t> refused;
    bool told = true;
    server_.acknowledge(env_, [&] {
      for (const auto& [number, through] : moved) {
        const auto& one = held_.at(number);
        if (!server_.commit(options_.group, id_, env_.now(),
                            {one.at, one.generation, static_cast<std::uint64_t>(through)}))
          refused.push_back(number);
      }
      told = !server_.state_->keeps_zombies;
    });
    for (const auto& [number, through] : moved)
      if (std::ranges::find(refused, number) == refused.end()) held_.at(number).tracker.committed(through);
    if (!told) return;
    for (const auto number : refused) {
      held_.erase(number);
      revoked_.push_back(number);
    }
  }

  std::vector<delivery> deliver(std::size_t messages_max) {
    std::vector<delivery> all;
    const std::scoped_lock lock(server_.common_->mutex);
    std::vector<std::uint32_t> order;
    for (const auto& [number, unused] : held_) order.push_back(number);
    if (order.empty()) return all;
    std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(turn_++ % order.size()));
    for (const auto number : order) {
      auto& one = held_.at(number);
      const auto after = static_cast<std::uint64_t>(one.tracker.delivered_through());
      auto at = after;
      for (const auto& stored : server_.read(one.at, after, messages_max - all.size())) {
        one.tracker.delivered(static_cast<std::int64_t>(++at));
        all.push_back({.content = stored.content(),
                       .tag = {number, one.session, at},
                       .at = position_of(at),
                       .stored_at = stored.stored_at});
      }
    }
    return all;
  }

  memory_log_server& server_;
  environment env_;
  subscribe_options options_;
  int partitions_;
  memory_log_server::member_id id_ = 0;
  std::map<std::uint32_t, partition_state> held_;
  std::vector<std::uint32_t> revoked_;
  std::vector<assigned_partition> assigned_;
  std::uint32_t sessions_ = 0;
  std::size_t turn_ = 0;
  memory_arrivals arrivals_;
};

class memory_log_backlog final : public backlog {
 public:
  memory_log_backlog(memory_log_server& server, const environment& env, std::string group,
                     const std::vector<std::string>& topics)
      : server_(server), env_(env), group_(std::move(group)) {
    const std::scoped_lock lock(server_.common_->mutex);
    for (const auto& topic : topics) {
      const auto known = server_.state_->topics.find(std::string_view(topic));
      if (known == server_.state_->topics.end()) continue;
      for (std::uint32_t i = 0; i < known->second.size(); ++i)
        if (!known->second[i].empty()) ends_[{topic, i}] = known->second[i].size();
    }
  }
  bool is_done(const call_limits& limits) override {
    server_.reach(env_, limits);
    const std::scoped_lock lock(server_.common_->mutex);
    auto& shares = server_.group(group_).shares;
    return std::ranges::all_of(ends_, [&](const auto& one) {
      const auto topic = shares.find(std::string_view(one.first.topic));
      return topic != shares.end() && topic->second[one.first.partition].committed >= one.second;
    });
  }

 private:
  memory_log_server& server_;
  environment env_;
  std::string group_;
  std::map<memory_log_server::place, std::uint64_t> ends_;
};

std::unique_ptr<backlog> memory_log_server::backlog_of(const environment& env, const std::string& name,
                                                       const std::vector<std::string>& topics) {
  return std::make_unique<memory_log_backlog>(*this, env, name, topics);
}

broker_traits memory_log_server::traits() const { return {}; }

std::unique_ptr<subscription> memory_log_server::subscribe(const environment& env,
                                                           const subscribe_options& options, int partitions) {
  return std::make_unique<memory_log_subscription>(*this, env, options, partitions);
}

shared_list<memory_log_server::log>& memory_log_server::topic(std::string_view name, int partitions) {
  auto& found = state_->topics[shared_text(name)];
  if (found.empty()) found.resize(static_cast<std::size_t>(partitions));
  return found;
}

memory_log_server::group_state& memory_log_server::group(const std::string& name) {
  return state_->groups[shared_text(std::string_view(name))];
}

void memory_log_server::store(const message& what, timestamp now, int partitions) {
  auto& logs = topic(what.topic, partitions);
  const auto& by = what.key.empty() ? what.id : what.key;
  logs[stable_hash(by) % logs.size()].emplace_back(what, now);
}

memory_log_server::member_id memory_log_server::join(const subscribe_options& options, timestamp now,
                                                     int partitions) {
  const auto id = ++state_->members;
  auto& of = group(options.group);
  auto& joined = of.members[id];
  joined.last_seen = now;
  for (const auto& name : options.topics) {
    joined.topics.emplace_back(std::string_view(name));
    const auto count = topic(name, partitions).size();
    auto& shares = of.shares[shared_text(std::string_view(name))];
    for (std::uint32_t i = 0; i < count; ++i) shares[i];
  }
  changed();
  return id;
}

void memory_log_server::expel(group_state& of, member_id who) {
  of.members.erase(who);
  for (auto& [unused, shares] : of.shares)
    for (auto& [number, one] : shares)
      if (one.owner == who) one.owner = 0, one.recalled = false;
  changed();
}

void memory_log_server::bury_silent(group_state& of, timestamp now) {
  std::vector<member_id> silent;
  for (const auto& [id, one] : of.members)
    if (now - one.last_seen > session_timeout_) silent.push_back(id);
  for (const auto id : silent) expel(of, id);
}

memory_log_server::member_id memory_log_server::wanted_owner(const group_state& of, std::string_view topic,
                                                             std::uint32_t partition) const {
  std::vector<member_id> listening;
  for (const auto& [id, one] : of.members)
    if (std::ranges::find(one.topics, topic) != one.topics.end()) listening.push_back(id);
  return listening.empty() ? 0 : listening[(partition + of.rotation) % listening.size()];
}

memory_log_server::answer memory_log_server::heartbeat(const std::string& name, member_id who,
                                                       timestamp now) {
  auto& of = group(name);
  bury_silent(of, now);
  answer out;
  const auto me = of.members.find(who);
  if (me == of.members.end()) {
    out.known = false;
    out.told = !state_->keeps_zombies;
    return out;
  }
  me->second.last_seen = now;
  for (const auto& [topic, shares] : of.shares)
    for (const auto& [number, one] : shares) {
      const place at{std::string(topic), number};
      const bool wanted = wanted_owner(of, topic, number) == who;
      if (one.owner == who) out.held.push_back({at, one.generation, one.committed});
      if (one.owner == who && (one.recalled || !wanted)) out.give_up.push_back(at);
      out.may_take = out.may_take || (one.owner == 0 && wanted);
    }
  return out;
}

void memory_log_server::take(const std::string& name, member_id who) {
  auto& of = group(name);
  if (!of.members.contains(who)) return;
  for (auto& [topic, shares] : of.shares)
    for (auto& [number, one] : shares)
      if (one.owner == 0 && wanted_owner(of, topic, number) == who) {
        one.owner = who;
        one.generation = ++of.generations;
      }
}

void memory_log_server::give_up(const std::string& name, member_id who, const std::vector<place>& places) {
  auto& of = group(name);
  for (const auto& at : places) {
    auto& one = of.shares.at(shared_text(std::string_view(at.topic))).at(at.partition);
    if (one.owner == who) one.owner = 0, one.recalled = false;
  }
  changed();
}

bool memory_log_server::commit(const std::string& name, member_id who, timestamp now,
                               const holding& through) {
  auto& of = group(name);
  bury_silent(of, now);
  auto& one = of.shares.at(shared_text(std::string_view(through.at.topic))).at(through.at.partition);
  if (one.owner != who || one.generation != through.generation) return false;
  one.committed = std::max(one.committed, through.committed);
  return true;
}

void memory_log_server::leave(const std::string& name, member_id who) { expel(group(name), who); }

std::vector<stored_message> memory_log_server::read(const place& at, std::uint64_t after,
                                                    std::size_t messages_max) {
  const auto& from = state_->topics.at(shared_text(std::string_view(at.topic))).at(at.partition);
  const auto first = from.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(after, from.size()));
  const auto count = std::min<std::size_t>(messages_max, static_cast<std::size_t>(from.end() - first));
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

void memory_log_server::rebalance(const std::string& name) {
  const std::scoped_lock lock(common_->mutex);
  auto& of = group(name);
  ++of.rotation;
  for (auto& [topic, shares] : of.shares)
    for (auto& [number, one] : shares) one.recalled = one.owner != 0;
  changed();
}

void memory_log_server::expel_members(const std::string& name) {
  const std::scoped_lock lock(common_->mutex);
  auto& of = group(name);
  while (!of.members.empty()) expel(of, of.members.begin()->first);
}

void memory_log_server::keep_zombies(bool keep) {
  const std::scoped_lock lock(common_->mutex);
  state_->keeps_zombies = keep;
}

void memory_log_server::forget_acknowledgements(const std::string& name) {
  expel_members(name);
  const std::scoped_lock lock(common_->mutex);
  for (auto& [topic, shares] : group(name).shares)
    for (auto& [number, one] : shares) one.committed = 0;
}

}  // namespace settle::test
