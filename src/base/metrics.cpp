#include "settle/metrics.hpp"

#include <algorithm>

#include "base/series.hpp"

namespace settle::inline v0 {
namespace {

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string series_of(std::string_view name, metrics::labels with) {
  std::string out(name);
  if (with.size() == 0) return out;
  char separator = '{';
  for (const auto& [label, value] : with) {
    out += separator;
    out.append(label).append("=\"").append(escaped(value)).append("\"");
    separator = ',';
  }
  return out += '}';
}

void metrics::add(std::string_view name, labels with, std::int64_t amount) {
  if (amount == 0) return;
  auto key = series_of(name, with);
  const std::scoped_lock lock(mutex_);
  values_[std::move(key)] += amount;
}

std::int64_t metrics::value(std::string_view name, labels with) const {
  const auto key = series_of(name, with);
  const std::scoped_lock lock(mutex_);
  const auto found = values_.find(key);
  return found == values_.end() ? 0 : found->second;
}

std::map<std::string, std::int64_t> metrics::snapshot() const {
  const std::scoped_lock lock(mutex_);
  return values_;
}

void time_counts::add(duration took) noexcept {
  if (took < duration::zero()) return;
  const auto* const bound = std::ranges::lower_bound(bounds, took);
  if (bound != bounds.end()) ++counts_[static_cast<std::size_t>(bound - bounds.begin())];
  ++count_;
  sum_ += took;
}

void time_counts::add(const time_counts& others) noexcept {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += others.counts_[i];
  count_ += others.count_;
  sum_ += others.sum_;
}

std::int64_t time_counts::within(std::size_t bound) const {
  std::int64_t all = 0;
  for (std::size_t i = 0; i <= bound; ++i) all += counts_.at(i);
  return all;
}

void metrics::add_times(std::string_view name, labels with, const time_counts& what) {
  if (what.count() == 0) return;
  auto key = series_of(name, with);
  const std::scoped_lock lock(mutex_);
  times_[std::move(key)].add(what);
}

time_counts metrics::times(std::string_view name, labels with) const {
  const auto key = series_of(name, with);
  const std::scoped_lock lock(mutex_);
  const auto found = times_.find(key);
  return found == times_.end() ? time_counts() : found->second;
}

std::map<std::string, time_counts> metrics::times_snapshot() const {
  const std::scoped_lock lock(mutex_);
  return times_;
}

}  // namespace settle
