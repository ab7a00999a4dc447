// Counters with names and labels, kept in memory, read as a snapshot.
//
//   env.counters->add("settle_consumer_duplicates_total", {{"consumer", "warehouse"}});
//
// Names and labels follow the Prometheus conventions, so that an exporter can print them as they are.
// Thread-safe. Hot paths add once per batch, not once per message.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#pragma GCC visibility push(default)
namespace settle::inline v0 {

class metrics {
 public:
  using labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  void add(std::string_view name, labels with, std::int64_t amount = 1);

  // The value of one counter; zero if it was never touched.
  std::int64_t value(std::string_view name, labels with) const;

  // Every counter, as `name{label="value"}` → value, sorted.
  std::map<std::string, std::int64_t> snapshot() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> values_;
};

}  // namespace settle

#pragma GCC visibility pop
