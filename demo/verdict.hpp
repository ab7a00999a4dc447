// The end of the storm, in words and numbers.
#pragma once

#include "stage.hpp"
#include "workload.hpp"

namespace storm {

// What was done to the processes.
struct blows_dealt {
  int kills = 0;
  int pauses = 0;
  int reloads = 0;
};

// Asks the checker and prints what it says; of the services of a file each by itself as well. Returns the
// process's exit code: 0 if everything committed was applied exactly once, in order.
int give_verdict(const settings& of, const stage& seen, const blows_dealt& dealt, double took);

}  // namespace storm
