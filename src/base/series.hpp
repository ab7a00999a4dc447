// One counter or gauge in the Prometheus text format.
#pragma once

#include <string>
#include <string_view>

#include "settle/metrics.hpp"

namespace settle::inline v0 {

// name{label="value"}; the values are escaped.
std::string series_of(std::string_view name, metrics::labels with);

}  // namespace settle::inline v0
