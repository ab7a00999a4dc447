#include "daemon/api/metrics_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/api/metric_table.hpp"

namespace settle::daemon {
namespace {

std::string header_of(const std::string& family) {
  const auto known = std::ranges::find(all_metrics(), std::string_view(family), &metric::name);
  if (known == all_metrics().end())
    return fmt::format("# HELP {0} Not described.\n# TYPE {0} untyped\n", family);
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", family, known->help, to_string(known->type));
}

double seconds(duration of) { return std::chrono::duration<double>(of).count(); }

// The buckets of a histogram, each with all below it, and the sum and the count of all.
std::string histogram_lines(const std::string& series, const time_counts& times) {
  const auto brace = series.find('{');
  const auto name = series.substr(0, brace);
  const auto labels = brace == std::string::npos ? "" : series.substr(brace);
  const auto inner = labels.empty() ? "" : labels.substr(1, labels.size() - 2) + ",";
  std::string out;
  for (std::size_t i = 0; i < time_counts::bounds.size(); ++i)
    out += fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", name, inner, seconds(time_counts::bounds[i]),
                       times.within(i));
  out += fmt::format("{}_bucket{{{}le=\"+Inf\"}} {}\n", name, inner, times.count());
  out += fmt::format("{}_sum{} {}\n", name, labels, seconds(times.sum()));
  return out + fmt::format("{}_count{} {}\n", name, labels, times.count());
}

}  // namespace

std::string metrics_text(const std::map<std::string, std::int64_t>& counters,
                         const std::map<std::string, double>& gauges,
                         const std::map<std::string, time_counts>& times) {
  // A name may be the beginning of another, so series are gathered by family, not by their sorted text.
  std::map<std::string, std::map<std::string, std::string>> families;  // series → lines
  const auto put = [&](const std::string& series, std::string lines) {
    families[series.substr(0, series.find('{'))][series] = std::move(lines);
  };
  const auto line = [](const std::string& series, auto value) {
    return fmt::format("{} {}\n", series, value);
  };
  for (const auto& one : all_metrics()) {
    const std::string name(one.name);
    if (!one.labels.empty()) continue;
    if (one.type == metric_type::counter) put(name, line(name, 0));
    if (one.type == metric_type::histogram) put(name, histogram_lines(name, {}));
  }
  for (const auto& [series, value] : counters) put(series, line(series, value));
  for (const auto& [series, value] : gauges) put(series, line(series, value));
  for (const auto& [series, value] : times) put(series, histogram_lines(series, value));
  std::string out;
  for (const auto& [family, all] : families) {
    out += header_of(family);
    for (const auto& [series, lines] : all) out += lines;
  }
  return out;
}

}  // namespace settle::daemon
