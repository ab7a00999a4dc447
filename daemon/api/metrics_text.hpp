// The Prometheus text format (version 0.0.4) from counters, gauges and histograms.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/series.hpp"  // the keys of all maps

namespace settle::daemon {

constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

// Figures that have one origin. What the table says of it and was not counted yet is shown as zero.
struct metric_source {
  enum class origin { everything, process, service, broker };
  origin of = origin::everything;
  std::string label = {};  // before all others: service="orders"; empty: none
  std::map<std::string, std::int64_t> counters = {};
  std::map<std::string, double> gauges = {};
  std::map<std::string, time_counts> times = {};
};

// Families in the order of their names, each once, with HELP and TYPE from the table. A counter that the
// table does not know is shown all the same: a number nobody explained beats one that is missing.
std::string metrics_text(std::span<const metric_source> sources);

}  // namespace settle::daemon
