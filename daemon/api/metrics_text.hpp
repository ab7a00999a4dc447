// The Prometheus text format (version 0.0.4) from counters, gauges and histograms.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/series.hpp"  // the keys of all maps

namespace settle::daemon {

constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

// Families in the order of their names, each once, with HELP and TYPE from the table. A counter that the
// table does not know is shown all the same: a number nobody explained beats one that is missing.
std::string metrics_text(const std::map<std::string, std::int64_t>& counters,
                         const std::map<std::string, double>& gauges,
                         const std::map<std::string, time_counts>& times);

}  // namespace settle::daemon
