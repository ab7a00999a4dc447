// Whether two services, or two brokers, are told the same: what a reload leaves alone.
#pragma once

#include "config/configuration.hpp"

namespace settle::config {

// Secrets among it.
bool same_settings(const service_settings& a, const service_settings& b);
bool same_settings(const broker_settings& a, const broker_settings& b);

// Settings of the whole file that differ and cannot change while the daemon runs, by their names.
std::vector<std::string> fixed_differences(const configuration& running, const configuration& next);

// The settings of `running` that are fixed, everything else of `next`.
configuration with_fixed_of(const configuration& running, configuration next);

}  // namespace settle::config
