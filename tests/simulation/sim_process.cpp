#include <algorithm>
#include <set>

#include "simulation/sim_vfs.hpp"
#include "simulation/sim_vfs_methods.hpp"

namespace settle::sim {

void handle::drop_locks() {
  lock = SQLITE_LOCK_NONE;
  shared_locks = exclusive_locks = 0;
}

// With its last user the wal-index is gone: whoever comes next rebuilds it from the log, as after the
// unix VFS has found nobody else there.
void handle::detach_memory() {
  if (!memory) return;
  shared_locks = exclusive_locks = 0;
  std::erase(memory->users, this);
  if (memory->users.empty() && file->memory == memory) file->memory.reset();
}

void machine::kill_all() {
  for (auto* one : processes_) one->kill();
}

void machine::lose_power() {
  kill_all();
  files.lose_power();
}

process::process(machine& on, const std::string& name) : on_(on), name_(name) {
  fill_vfs(vfs_, *this);
  sqlite3_vfs_register(&vfs_, 0);
  on_.processes_.push_back(this);
}

process::~process() {
  kill();
  for (const auto& one : frozen_)
    for (std::size_t i = 0; i < one.regions.size(); ++i)
      one.regions[i].copy(one.memory->regions[i].get(), one.regions[i].size());
  std::erase(on_.processes_, this);
  sqlite3_vfs_unregister(&vfs_);
}

void process::kill() {
  if (dead_) return;
  dead_ = true;
  countdown_ = 0;
  std::set<shared_memory*> seen;
  for (auto* one : handles_) {
    one->drop_locks();
    std::erase(one->file->open, one);
    const auto memory = one->memory;
    one->detach_memory();
    if (!memory || !seen.insert(memory.get()).second) continue;
    frozen_memory copy{memory, {}};
    for (const auto& region : memory->regions) copy.regions.emplace_back(region.get(), memory->region_bytes);
    frozen_.push_back(std::move(copy));
  }
}

void process::at_point(int n, std::function<void()> then) {
  countdown_ = n;
  then_ = std::move(then);
}

bool process::pass_point() {
  if (!dead_ && countdown_ > 0 && --countdown_ == 0) std::exchange(then_, nullptr)();
  return !dead_;
}

}  // namespace settle::sim
