#include "support/memory_server.hpp"

#include <chrono>
#include <condition_variable>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "base/text.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto look_again = 1ms;

void put(shared_text& to, std::string_view part) {
  const auto size = static_cast<std::uint32_t>(part.size());
  to.append(reinterpret_cast<const char*>(&size), sizeof size);
  to.append(part);
}

std::string take(std::string_view& from) {
  std::uint32_t size = 0;
  from.copy(reinterpret_cast<char*>(&size), sizeof size);
  std::string part(from.substr(sizeof size, size));
  from.remove_prefix(sizeof size + size);
  return part;
}

// As strict as the embedded broker.
void check_names(const message& m) {
  constexpr auto name_max = event_limits::name_bytes_max;
  constexpr auto text_max = event_limits::header_bytes_max;
  check_name(m.topic, {"topic", name_max});
  check_name(m.id, {"message id", text_max, true});
  check_name(m.source, {"source", text_max, true});
  check_name(m.type, {"event type", name_max, true});
  check_name(m.key, {"key", event_limits::key_bytes_max, true});
  check_name(m.subject, {"subject", text_max, true});
  check_name(m.content_type, {"content type", name_max, true});
  for (const auto& [name, content] : m.extensions) {
    check_name(name, {"attribute name", name_max});
    check_name(content, {"attribute", text_max, true});
  }
}

void check_subscription(const subscribe_options& options) {
  check_name(options.group, {"group", event_limits::name_bytes_max});
  if (options.topics.empty()) throw error(errc::invalid_argument, "a subscription needs at least one topic");
  for (const auto& topic : options.topics) check_name(topic, {"topic", event_limits::name_bytes_max});
}

}  // namespace

class memory_connection final : public broker, public publisher {
 public:
  memory_connection(memory_server& server, const environment& env, int partitions)
      : server_(server), env_(env), partitions_(partitions) {}

  publisher& publishing() override { return *this; }
  broker_traits traits() const override { return server_.traits(); }

  std::vector<publish_result> publish(std::span<const message> batch, const call_limits& limits) override {
    return server_.publish(batch, limits, env_, partitions_);
  }

  std::unique_ptr<backlog> backlog_of(const std::string& group, const std::vector<std::string>& topics,
                                      const call_limits& limits) override {
    server_.reach(env_, limits);
    return server_.backlog_of(env_, group, topics);
  }

  std::unique_ptr<subscription> subscribe(const subscribe_options& options) override {
    check_subscription(options);
    server_.reach(env_, {});
    return server_.subscribe(env_, options, partitions_);
  }

 private:
  memory_server& server_;
  environment env_;
  int partitions_;
};

stored_message::stored_message(const message& from, timestamp at) : stored_at(at) {
  for (const auto* part : {&from.id, &from.source, &from.type, &from.topic, &from.key, &from.subject,
                           &from.content_type, &from.payload})
    put(packed, *part);
  put(packed, std::to_string(from.time.time_since_epoch().count()));
  for (const auto& [name, value] : from.extensions) {
    put(packed, name);
    put(packed, value);
  }
}

message stored_message::content() const {
  std::string_view rest(packed);
  message m;
  for (auto* part : {&m.id, &m.source, &m.type, &m.topic, &m.key, &m.subject, &m.content_type, &m.payload})
    *part = take(rest);
  m.time = timestamp(duration(std::stoll(take(rest))));
  while (!rest.empty()) {
    auto name = take(rest);
    m.extensions[std::move(name)] = take(rest);
  }
  return m;
}

std::unique_ptr<broker> memory_server::open(const environment& env, int partitions) {
  return std::make_unique<memory_connection>(*this, env, partitions);
}

void memory_server::lose_acknowledgements(int calls, acknowledgement_loss how) {
  const std::scoped_lock lock(common_->mutex);
  common_->losses = calls;
  common_->loss = how;
}

bool memory_server::takes_loss(acknowledgement_loss& how) {
  const std::scoped_lock lock(common_->mutex);
  if (common_->losses == 0) return false;
  --common_->losses;
  how = common_->loss;
  return true;
}

std::map<std::string, int> memory_server::stored() const {
  const std::scoped_lock lock(common_->mutex);
  std::map<std::string, int> all;
  for (const auto& [id, times] : common_->published) all.emplace(id, times);
  return all;
}

// The limit is one of real time or of the environment's, whichever comes first.
void memory_server::reach(const environment& env, const call_limits& limits) const {
  const auto started = steady::now();
  const auto noted = env.now();
  while (common_->hanging) {
    if (limits.stop.stop_requested()) throw error(errc::cancelled, "stopped while the broker did not answer");
    if (steady::now() - started >= limits.within || env.now() - noted >= limits.within)
      throw error::with_unknown_outcome(errc::destination_unavailable, "the broker did not answer in time");
    std::this_thread::sleep_for(look_again);
  }
  if (common_->away) throw error(errc::destination_unavailable, "the broker is away");
}

std::vector<publish_result> memory_server::publish(std::span<const message> batch, const call_limits& limits,
                                                   const environment& env, int partitions) {
  std::vector<publish_result> results(batch.size());
  std::vector<std::size_t> accepted;
  std::set<std::pair<std::string, std::string>> blocked;  // topics and keys
  for (std::size_t i = 0; i < batch.size(); ++i) try {
      const auto& m = batch[i];
      if (!m.key.empty() && blocked.contains({m.topic, m.key}))
        throw error(errc::message_rejected, "an earlier message of its key was rejected");
      check_names(m);
      accepted.push_back(i);
    } catch (const error& e) {
      blocked.emplace(batch[i].topic, batch[i].key);
      results[i] = {publish_status::message_rejected, e.what()};
    }
  if (accepted.empty()) return results;
  try {
    reach(env, limits);
    with_fault_points(env, "broker.store", [&] {
      const std::scoped_lock lock(common_->mutex);
      for (const auto i : accepted) {
        store(batch[i], env.now(), partitions);
        ++common_->published[shared_text(std::string_view(batch[i].id))];
      }
      changed();
    });
  } catch (const error& e) {
    for (const auto i : accepted) results[i] = {publish_status::destination_failed, e.what()};
  }
  return results;
}

void memory_arrivals::wait(duration at_most, std::stop_token stop) {
  const auto until = steady::now() + at_most;
  while (changes_ == seen_ && steady::now() < until && !stop.stop_requested())
    std::this_thread::sleep_for(look_again);
  seen_ = changes_;
}

}  // namespace settle::test
