// The reference pages in docs/reference/, printed from the tables that the program itself uses.
#pragma once

#include <string>

namespace settle::daemon {

std::string configuration_reference();  // docs/reference/configuration.md
std::string metrics_reference();        // docs/reference/metrics.md

}  // namespace settle::daemon
