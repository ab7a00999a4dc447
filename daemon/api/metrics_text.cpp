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

// Which of those without labels it would count.
bool is_zero_of(metric_source::origin source, const metric& one) {
  const bool of_process = one.name.starts_with("settle_http_");
  switch (source) {
    case metric_source::origin::everything:
      return true;
    case metric_source::origin::process:
      return of_process;
    case metric_source::origin::service:
      return !of_process;
    case metric_source::origin::broker:
      break;
  }
  return false;
}

std::string labelled(const std::string& series, const std::string& label) {
  if (label.empty()) return series;
  const auto brace = series.find('{');
  if (brace == std::string::npos) return fmt::format("{}{{{}}}", series, label);
  return fmt::format("{}{{{},{}", series.substr(0, brace), label, series.substr(brace + 1));
}

// A name may be the beginning of another, so series are gathered by family, not by their sorted text.
using families = std::map<std::string, std::map<std::string, std::string>>;  // series → lines

void gather(const metric_source& from, families& into) {
  const auto put = [&](const std::string& name, const auto& lines_of) {
    const auto series = labelled(name, from.label);
    into[series.substr(0, series.find('{'))][series] = lines_of(series);
  };
  const auto line = [](auto value) {
    return [value](const std::string& series) { return fmt::format("{} {}\n", series, value); };
  };
  const auto histogram = [](const time_counts& times) {
    return [&times](const std::string& series) { return histogram_lines(series, times); };
  };
  for (const auto& one : all_metrics()) {
    const std::string name(one.name);
    if (!one.labels.empty() || !is_zero_of(from.of, one)) continue;
    if (one.type == metric_type::counter) put(name, line(0));
    if (one.type == metric_type::histogram) put(name, histogram({}));
  }
  for (const auto& [series, value] : from.counters) put(series, line(value));
  for (const auto& [series, value] : from.gauges) put(series, line(value));
  for (const auto& [series, value] : from.times) put(series, histogram(value));
}

}  // namespace

std::string metrics_text(std::span<const metric_source> sources) {
  families all;
  for (const auto& one : sources) gather(one, all);
  std::string out;
  for (const auto& [family, series] : all) {
    out += header_of(family);
    for (const auto& [name, lines] : series) out += lines;
  }
  return out;
}

}  // namespace settle::daemon
