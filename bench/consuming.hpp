// What the benches of the consumer share: messages, some of which fail, and a broker that costs nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness.hpp"
#include "settle/consume.hpp"
#include "settle/driver/broker.hpp"
#include "settle/failure.hpp"
#include "settle/ids.hpp"
#include "workload.hpp"

namespace bench {

inline settle::message message_of(std::int64_t number) {
  settle::message m;
  m.id = settle::system_ids().next_as<settle::event_id>().text();
  m.source = "settle:0123456789abcdef0123456789abcdef";
  m.type = bench::type;
  m.topic = bench::topic;
  m.key = bench::key_of(number);
  m.subject = m.key;
  m.content_type = "application/json";
  m.extensions["sequence"] = std::to_string(number);
  m.payload = bench::payload();
  return m;
}

// Lists in memory: eight partitions with an owner each, as the embedded broker has them, handed out in turns
// of 64 messages. Nothing is delivered twice, and messages are moved, so that a consumer's database is all
// that costs.
class memory_broker final : public settle::broker, public settle::publisher {
 public:
  static constexpr std::int64_t partitions = 8;

  void add(settle::message m, std::int64_t number) {
    const auto partition =
        static_cast<std::uint32_t>(number % partitions);  // 1,000 keys: always the same for a key
    const auto position = next_position_++;
    waiting_.at(partition).add({.content = std::move(m),
                                .tag = {partition, 1, static_cast<std::uint64_t>(position)},
                                .at = settle::log_position::of(position)});
  }

  std::int64_t size() const {
    std::int64_t waiting = 0;
    for (const auto& list : waiting_) waiting += static_cast<std::int64_t>(list.size());
    return waiting;
  }

  settle::broker_traits traits() const override { return {}; }
  settle::publisher& publishing() override { return *this; }
  std::vector<settle::publish_result> publish(std::span<const settle::message> batch,
                                              const settle::call_limits&) override {
    return std::vector<settle::publish_result>(batch.size());
  }
  std::unique_ptr<settle::subscription> subscribe(const settle::subscribe_options&) override {
    return std::make_unique<member>(*this);
  }

 private:
  static constexpr std::size_t in_a_row = 64;

  // A deque would free a node for nearly every message that is taken, and the consumer would pay for it.
  class line {
   public:
    bool empty() const { return taken_ == all_.size(); }
    std::size_t size() const { return all_.size() - taken_; }
    settle::delivery&& take() { return std::move(all_[taken_++]); }
    void add(settle::delivery one) {
      if (taken_ > all_.size() / 2) {
        all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(taken_));
        taken_ = 0;
      }
      all_.push_back(std::move(one));
    }

   private:
    std::vector<settle::delivery> all_;
    std::size_t taken_ = 0;
  };

  class never final : public settle::wakeup {
   public:
    void wait(settle::duration at_most, std::stop_token) override { std::this_thread::sleep_for(at_most); }
  };

  class member final : public settle::subscription {
   public:
    explicit member(memory_broker& home) : home_(home) {}

    settle::fetched fetch(std::size_t messages_max, const settle::call_limits&) override {
      settle::fetched out;
      if (!std::exchange(assigned_, true))
        for (std::uint32_t p = 0; p < partitions; ++p)
          out.assigned.push_back({p, 1, "orders/" + std::to_string(p)});
      out.deliveries.reserve(messages_max);
      for (std::int64_t empty = 0; empty < partitions && out.deliveries.size() < messages_max;) {
        auto& list = home_.waiting_.at(home_.turn_++ % partitions);
        empty = list.empty() ? empty + 1 : 0;
        for (std::size_t n = 0; n < in_a_row && !list.empty() && out.deliveries.size() < messages_max; ++n)
          out.deliveries.push_back(list.take());
      }
      return out;
    }
    // As if all before it were done as well; nothing is ever delivered again.
    void acknowledge(std::span<const settle::delivery_tag> done, const settle::call_limits&) override {
      for (const auto& tag : done) {
        auto& highest = settled_.at(tag.partition);
        highest = std::max(highest, static_cast<std::int64_t>(tag.number));
      }
    }
    std::vector<settle::settled_partition> settled() const override {
      std::vector<settle::settled_partition> all;
      for (std::uint32_t p = 0; p < partitions; ++p)
        all.push_back(
            {p, "orders/" + std::to_string(p),
             settled_.at(p) < 0 ? settle::log_position() : settle::log_position::of(settled_.at(p))});
      return all;
    }
    void doubt(std::uint32_t) override {}
    void leave() noexcept override {}
    settle::wakeup& arrivals() override { return arrivals_; }

   private:
    memory_broker& home_;
    bool assigned_ = false;
    std::array<std::int64_t, partitions> settled_{-1, -1, -1, -1, -1, -1, -1, -1};
    never arrivals_;
  };

  std::array<line, partitions> waiting_;
  std::int64_t next_position_ = 0;
  std::size_t turn_ = 0;
};

inline void fill(memory_broker& what, std::int64_t messages) {
  for (std::int64_t n = 0; n < messages; ++n) what.add(message_of(n), n);
}

// New messages in the order in which that broker hands them out, for those who only insert their rows.
inline std::vector<settle::message> delivered(std::int64_t messages) {
  memory_broker from;
  fill(from, messages);
  std::vector<settle::message> all;
  for (auto& one : from.subscribe({})->fetch(static_cast<std::size_t>(messages)).deliveries)
    all.push_back(std::move(one.content));
  return all;
}

class no_log final : public settle::log_sink {
 public:
  bool enabled(settle::log_level) const override { return false; }
  void write(settle::log_level, std::string_view, std::initializer_list<settle::log_field>) override {}
};

inline settle::environment without_log() {
  static no_log log;
  settle::environment env;
  env.log = &log;
  return env;
}

// How messages are to fail is in their subject, and fail_if_told() does it.
inline constexpr const char* fails_always = "fails always";
inline constexpr const char* fails_once = "fails once";

// One message in two hundred of each kind, so one in a hundred fails, spread over the keys.
inline void add_failing(memory_broker& to, std::int64_t number) {
  auto m = message_of(number);
  const auto drawn = static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15U >> 32U;
  if (drawn % 200 == 0) m.subject = fails_always;
  if (drawn % 200 == 1) m.subject = fails_once;
  to.add(std::move(m), number);
}

// A message that fails once has failed when it is charged: at once if it has not asked the database for
// anything, else when it runs alone.
class failing_handler {
 public:
  explicit failing_handler(bool after_writing = false) : calls_that_fail_(after_writing ? 2 : 1) {}

  void fail_if_told(const settle::message& m) {
    if (m.subject == fails_always)
      throw settle::handler_failed(settle::failure_class::permanent, "this order cannot be shipped");
    if (m.subject != fails_once) return;
    const auto [found, is_new] = tries_.try_emplace(m.id, 0);
    if (is_new) order_.push_back(m.id);
    if (++found->second <= calls_that_fail_) throw std::runtime_error("not this time");
    for (; order_.size() > remembered_max; order_.pop_front()) tries_.erase(order_.front());
  }

 private:
  // So that a long run does not look like a leak. Not when it succeeds: its batch may be rolled back for
  // another.
  static constexpr std::size_t remembered_max = 1000;
  int calls_that_fail_;
  std::map<std::string, int> tries_;
  std::deque<std::string> order_;
};

inline std::int64_t ended(const settle::consumer& of) {
  const auto counts = of.counts();
  return counts.applied + counts.dead_letters;
}

// Until so many more messages are applied or given up; those that failed are waited for.
inline void run_until_ended(settle::consumer& what, std::int64_t messages) {
  for (const auto goal = ended(what) + messages; ended(what) < goal;)
    if (!what.run_once({})) what.arrivals().wait(what.idle_wait(), {});
}

inline void add_failure_counts(report& to, const settle::consumer& of) {
  const auto counts = of.counts();
  const auto share = [&](std::int64_t counted) {
    return static_cast<double>(counted) / static_cast<double>(ended(of));
  };
  to.counters.push_back({"failures_per_message", share(counts.failures)});
  to.counters.push_back({"parked_per_message", share(counts.parked)});
  to.counters.push_back({"dead_letters_per_message", share(counts.dead_letters)});
}

}  // namespace bench
