#include "simulation/sim_shm.hpp"

namespace settle::sim {

int shm_map(handle& one, const shm_region& wanted, void volatile** out) {
  *out = nullptr;
  if (one.owner->dead()) return SQLITE_IOERR_SHMMAP;
  if (!one.memory) {
    if (!one.file->memory) one.file->memory = std::make_shared<shared_memory>();
    one.memory = one.file->memory;
    one.memory->region_bytes = static_cast<std::size_t>(wanted.bytes);
    one.memory->users.push_back(&one);
  }
  auto& regions = one.memory->regions;
  const auto index = static_cast<std::size_t>(wanted.number);
  if (index >= regions.size() && !wanted.extend) return SQLITE_OK;
  while (index >= regions.size()) regions.push_back(std::make_unique<char[]>(one.memory->region_bytes));
  *out = regions[index].get();
  return SQLITE_OK;
}

int shm_lock(handle& one, int offset, int n, int flags) {
  if (one.owner->dead() || !one.memory) return SQLITE_IOERR_SHMLOCK;
  const unsigned slots = ((1U << n) - 1) << offset;
  if ((flags & SQLITE_SHM_UNLOCK) != 0) {
    one.shared_locks &= ~slots;
    one.exclusive_locks &= ~slots;
    return SQLITE_OK;
  }
  const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
  for (const auto* other : one.memory->users) {
    if (other == &one) continue;
    const auto in_the_way = other->exclusive_locks | (exclusive ? other->shared_locks : 0U);
    if ((in_the_way & slots) != 0) return SQLITE_BUSY;
  }
  (exclusive ? one.exclusive_locks : one.shared_locks) |= slots;
  return SQLITE_OK;
}

}  // namespace settle::sim
