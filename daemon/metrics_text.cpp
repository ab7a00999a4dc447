#include "daemon/metrics_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/metric_table.hpp"

namespace settle::daemon {
namespace {

std::string header_of(std::string_view family) {
  const auto known = std::ranges::find(all_metrics(), family, &metric::name);
  if (known == all_metrics().end()) return fmt::format("# TYPE {} untyped\n", family);
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", family, known->help, to_string(known->type));
}

}  // namespace

std::string metrics_text(const std::map<std::string, std::int64_t>& counters,
                         const std::map<std::string, double>& gauges) {
  // A name may be the beginning of another, so series are gathered by family, not by their sorted text.
  std::map<std::string, std::map<std::string, std::string>> families;
  const auto put = [&](const std::string& series, std::string value) {
    families[series.substr(0, series.find('{'))][series] = std::move(value);
  };
  for (const auto& one : all_metrics())
    if (one.type == metric_type::counter && one.labels.empty()) put(std::string(one.name), "0");
  for (const auto& [series, value] : counters) put(series, std::to_string(value));
  for (const auto& [series, value] : gauges) put(series, fmt::format("{}", value));
  std::string out;
  for (const auto& [family, all] : families) {
    out += header_of(family);
    for (const auto& [series, value] : all) out += fmt::format("{} {}\n", series, value);
  }
  return out;
}

}  // namespace settle::daemon
