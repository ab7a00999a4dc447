// Every metric that Settle has, in one table: /metrics takes its HELP and TYPE lines from here, and
// docs/reference/metrics.md is printed from it.
#pragma once

#include <span>
#include <string_view>

namespace settle::daemon {

enum class metric_type { counter, gauge, histogram };
std::string_view to_string(metric_type type);

struct metric {
  std::string_view name;
  metric_type type;
  std::string_view labels;  // separated by ", "; empty: none, and then what is counted is shown from 0 on
  std::string_view help;
};

std::span<const metric> all_metrics();

}  // namespace settle::daemon
