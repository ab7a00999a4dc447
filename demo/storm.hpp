// The storm: starts everybody, hits them while they work, and asks the checker at the end.
#pragma once

#include "workload.hpp"

namespace storm {

// Returns the process's exit code: 0 if everything committed was applied exactly once, in order.
int run_storm(const settings& of);

}  // namespace storm
