#include "settle/metrics.hpp"

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

}  // namespace settle
