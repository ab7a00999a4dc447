#include "support/memory_queue_server.hpp"

#include <utility>

namespace settle::test {

// The client's side: what a driver keeps in its process.
class memory_queue_subscription final : public subscription {
 public:
  memory_queue_subscription(memory_queue_server& server, const environment& env, subscribe_options options)
      : server_(server), env_(env), group_(std::move(options.group)), arrivals_(server.common_->changes) {
    with_fault_points(env_, "broker.subscribe", [&] {
      server_.declare(group_, options.topics);
      const std::scoped_lock lock(server_.common_->mutex);
      session_ = server_.connect(group_, env_.now());
    });
  }

  // The connection closes, and the server notices.
  ~memory_queue_subscription() override { close(); }
  memory_queue_subscription(const memory_queue_subscription&) = delete;
  memory_queue_subscription& operator=(const memory_queue_subscription&) = delete;

  fetched fetch(std::size_t messages_max, const call_limits& limits) override {
    server_.reach(env_, limits);
    send_acknowledgements();
    fetched out;
    const std::scoped_lock lock(server_.common_->mutex);
    if (!server_.is_connected(group_, session_, env_.now())) {
      if (session_ != 0) out.revoked.push_back(0);
      session_ = server_.connect(group_, env_.now());
      unsent_.clear();
    }
    auto& mine = server_.group(group_);
    while (out.deliveries.size() < messages_max && !mine.waiting.empty())
      out.deliveries.push_back(server_.hand_out(mine, session_));
    return out;
  }

  void acknowledge(std::span<const delivery_tag> done, const call_limits& limits) override {
    unsent_.insert(unsent_.end(), done.begin(), done.end());
    server_.reach(env_, limits);
    send_acknowledgements();
  }

  void doubt(std::uint32_t) override {}
  std::vector<settled_partition> settled() const override { return {}; }

  void leave() noexcept override {
    try {
      server_.reach(env_, {});
      send_acknowledgements();
    } catch (const std::exception&) {  // they come again, and are recognised
    }
    close();
  }

  wakeup& arrivals() override { return arrivals_; }

 private:
  void close() noexcept {
    const std::scoped_lock lock(server_.common_->mutex);
    server_.disconnect(server_.group(group_), std::exchange(session_, 0));
  }

  // What fails here is tried again by the next call.
  void send_acknowledgements() {
    if (unsent_.empty()) return;
    server_.memory_server::acknowledge(env_, [&] {
      for (const auto& tag : unsent_) server_.acknowledge(group_, tag);
    });
    unsent_.clear();
  }

  memory_queue_server& server_;
  environment env_;
  std::string group_;
  memory_queue_server::session_id session_ = 0;  // 0: none
  std::vector<delivery_tag> unsent_;
  memory_arrivals arrivals_;
};

class memory_queue_backlog final : public backlog {
 public:
  memory_queue_backlog(memory_queue_server& server, const environment& env, std::string group)
      : server_(server), env_(env), group_(std::move(group)), end_(server_.state_->places) {}
  bool is_done(const call_limits& limits) override {
    server_.reach(env_, limits);
    const std::scoped_lock lock(server_.common_->mutex);
    const auto& of = server_.group(group_);
    const auto was_there = [&](std::uint64_t place) { return place <= end_; };
    for (const auto& [place, unused] : of.waiting)
      if (was_there(place)) return false;
    for (const auto& [unused, one] : of.pending)
      if (was_there(one.place)) return false;
    return true;
  }

 private:
  memory_queue_server& server_;
  environment env_;
  std::string group_;
  std::uint64_t end_;
};

std::unique_ptr<backlog> memory_queue_server::backlog_of(const environment& env, const std::string& name,
                                                         const std::vector<std::string>&) {
  const std::scoped_lock lock(common_->mutex);
  return std::make_unique<memory_queue_backlog>(*this, env, name);
}

broker_traits memory_queue_server::traits() const {
  return {.has_owners = false,
          .has_positions = false,
          .replays_from_the_beginning = false,
          .keeps_keys_together = false,
          .redelivers_for = std::chrono::hours(1)};
}

std::unique_ptr<subscription> memory_queue_server::subscribe(const environment& env,
                                                             const subscribe_options& options, int) {
  return std::make_unique<memory_queue_subscription>(*this, env, options);
}

memory_queue_server::group_state& memory_queue_server::group(const std::string& name) {
  return state_->groups[shared_text(std::string_view(name))];
}

void memory_queue_server::declare(const std::string& name, const std::vector<std::string>& topics) {
  const std::scoped_lock lock(common_->mutex);
  for (const auto& topic : topics) group(name).topics[shared_text(std::string_view(topic))] = true;
}

void memory_queue_server::store(const message& what, timestamp now, int) {
  for (auto& [name, one] : state_->groups)
    if (one.topics.contains(std::string_view(what.topic)))
      one.waiting.emplace(++state_->places, queued{stored_message(what, now)});
}

memory_queue_server::session_id memory_queue_server::connect(const std::string& name, timestamp now) {
  const auto id = ++state_->sessions;
  group(name).sessions[id] = now;
  return id;
}

bool memory_queue_server::is_connected(const std::string& name, session_id who, timestamp now) {
  auto& of = group(name);
  std::vector<session_id> silent;
  for (const auto& [id, last_seen] : of.sessions)
    if (now - last_seen > session_timeout_) silent.push_back(id);
  for (const auto id : silent) disconnect(of, id);
  const auto me = of.sessions.find(who);
  if (me == of.sessions.end()) return false;
  me->second = now;
  return true;
}

delivery memory_queue_server::hand_out(group_state& of, session_id who) {
  const auto next = of.waiting.begin();
  const auto number = ++state_->deliveries;
  const auto place = next->first;
  auto& out = of.pending.emplace(number, handed_out{std::move(next->second), place, who}).first->second;
  of.waiting.erase(next);
  if (state_->copies > 0) {
    --state_->copies;
    of.waiting.emplace(++state_->places, queued{out.what.what});
  }
  return {.content = out.what.what.content(),
          .tag = {0, who, number},
          .redelivered = out.what.redelivered,
          .stored_at = out.what.what.stored_at};
}

void memory_queue_server::acknowledge(const std::string& name, const delivery_tag& done) {
  auto& of = group(name);
  const auto found = of.pending.find(done.number);
  if (found == of.pending.end() || found->second.to != done.session) return;
  of.done.emplace(found->second.place, std::move(found->second.what));
  of.pending.erase(found);
}

void memory_queue_server::disconnect(group_state& of, session_id who) {
  of.sessions.erase(who);
  for (auto one = of.pending.begin(); one != of.pending.end();) {
    if (one->second.to != who) {
      ++one;
      continue;
    }
    one->second.what.redelivered = true;
    of.waiting.emplace(one->second.place, std::move(one->second.what));
    one = of.pending.erase(one);
  }
  changed();
}

void memory_queue_server::break_sessions(const std::string& name) {
  const std::scoped_lock lock(common_->mutex);
  auto& of = group(name);
  while (!of.sessions.empty()) disconnect(of, of.sessions.begin()->first);
}

void memory_queue_server::forget_acknowledgements(const std::string& name) {
  break_sessions(name);
  const std::scoped_lock lock(common_->mutex);
  auto& of = group(name);
  for (auto& [place, one] : of.done) one.redelivered = true;
  of.waiting.merge(of.done);
  changed();
}

void memory_queue_server::deliver_twice(int messages) {
  const std::scoped_lock lock(common_->mutex);
  state_->copies = messages;
}

}  // namespace settle::test
