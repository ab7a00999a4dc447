// The wal-index: memory and locks that connections in WAL mode share.
#pragma once

#include "simulation/sim_vfs.hpp"

namespace settle::sim {

struct shm_region {
  int number = 0;
  int bytes = 0;
  bool extend = false;
};

int shm_map(handle& one, const shm_region& wanted, void volatile** out);
int shm_lock(handle& one, int offset, int n, int flags);

}  // namespace settle::sim
