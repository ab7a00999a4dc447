// Counters and histograms of times, with names and labels, kept in memory, read as a snapshot.
//
//   env.counters->add("settle_consumer_duplicates_total", {{"consumer", "warehouse"}});
//
//   settle::time_counts handlers;           // one thread's own, without a lock
//   handlers.add(took);
//   env.counters->add_times("settle_consumer_handler_seconds", {{"consumer", "warehouse"}}, handlers);
//
// Names and labels follow the Prometheus conventions, so that an exporter can print them as they are.
// metrics is thread-safe, time_counts is not. Hot paths add once per batch, not once per message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "settle/environment.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

// How often something took how long: a histogram with the same bounds for everything, from what a handler
// takes to what an outage lasts.
class time_counts {
 public:
  static constexpr std::array<duration, 18> bounds{
      duration(100),        duration(250),       duration(500),       duration(1'000),
      duration(2'500),      duration(5'000),     duration(10'000),    duration(25'000),
      duration(50'000),     duration(100'000),   duration(250'000),   duration(500'000),
      duration(1'000'000),  duration(2'500'000), duration(5'000'000), duration(10'000'000),
      duration(30'000'000), duration(60'000'000)};

  // A time below zero, of clocks that disagree or were set back, is nobody's: it is not counted.
  void add(duration took) noexcept;
  void add(const time_counts& others) noexcept;

  std::int64_t count() const { return count_; }
  duration sum() const { return sum_; }
  // How many took no longer than bounds[bound].
  std::int64_t within(std::size_t bound) const;

 private:
  std::array<std::int64_t, bounds.size()> counts_{};  // by the first bound that is not below
  std::int64_t count_ = 0;                            // with those beyond the last bound
  duration sum_{};
};

class metrics {
 public:
  using labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  void add(std::string_view name, labels with, std::int64_t amount = 1);

  // The value of one counter; zero if it was never touched.
  std::int64_t value(std::string_view name, labels with) const;

  // Every counter, as `name{label="value"}` → value, sorted.
  std::map<std::string, std::int64_t> snapshot() const;

  // The same for histograms.
  void add_times(std::string_view name, labels with, const time_counts& what);
  time_counts times(std::string_view name, labels with) const;
  std::map<std::string, time_counts> times_snapshot() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> values_;
  std::map<std::string, time_counts> times_;
};

}  // namespace settle

#pragma GCC visibility pop
