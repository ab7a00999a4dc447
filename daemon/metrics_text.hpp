// The Prometheus text format (version 0.0.4) from counters and gauges.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace settle::daemon {

constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

using label_values = std::vector<std::pair<std::string_view, std::string_view>>;

// A series as settle::metrics writes it: name{label="value"}.
std::string series_of(std::string_view name, const label_values& labels);

// Families in the order of their names, each once, with HELP and TYPE from the table. A counter that the
// table does not know is shown all the same: a number nobody explained beats one that is missing.
std::string metrics_text(const std::map<std::string, std::int64_t>& counters,
                         const std::map<std::string, double>& gauges);

}  // namespace settle::daemon
