// A simulated machine with processes on it, as SQLite sees them: each process is a SQLite VFS of its own
// over one disk.
//
//   sim::machine machine(seed);
//   sim::process relay(machine, "relay-1");
//   auto db = settle::sqlite::open("orders.db", {.vfs = relay.vfs()});
//   …
//   relay.kill();            // or machine.lose_power()
//   db.reset();              // its handles only return SQLITE_IOERR now: the destructors change nothing
//
// Locks and shared memory work between processes as those of SQLite's unix VFS do, so WAL mode works.
// One thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulation/sim_disk.hpp"

namespace settle::sim {

class process;

struct handle {
  process* owner = nullptr;
  inode_ptr file;
  std::string name;  // empty: a temporary file
  bool remove_on_close = false;
  bool syncs_directory = false;  // its first sync also makes the directory durable
  int lock = 0;                  // SQLITE_LOCK_NONE … EXCLUSIVE
  std::shared_ptr<shared_memory> memory;
  unsigned shared_locks = 0;  // bit per slot of the wal-index
  unsigned exclusive_locks = 0;

  void drop_locks();
  void detach_memory();
};

class machine {
 public:
  explicit machine(std::uint64_t seed) : files(seed) {}
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  // Everything stops, and the disk keeps what had reached it.
  void lose_power();

  // Every process dies, but the machine goes on: what was written stays, synced or not.
  void kill_all();

  disk files;

 private:
  friend class process;
  std::vector<process*> processes_;
};

class process {
 public:
  process(machine& on, const std::string& name);
  // Everything that it opened must be closed by now.
  ~process();
  process(const process&) = delete;
  process& operator=(const process&) = delete;

  const std::string& vfs() const { return name_; }
  bool dead() const { return dead_; }

  // Locks are dropped, and every handle returns SQLITE_IOERR from now on.
  void kill();

  // In the middle of something: `then` is called at the n-th point from now, where each change to the
  // disk has a point before it and one after it. It is expected to kill the process.
  void at_point(int n, std::function<void()> then);
  void disarm() { countdown_ = 0; }

  // Called by the VFS. False if the process is dead.
  bool pass_point();
  disk& files() { return on_.files; }
  void opened(handle* one) { handles_.push_back(one); }
  void closed(handle* one) { std::erase(handles_, one); }

 private:
  // What a dead process wrote into shared memory after its death, it never wrote.
  struct frozen_memory {
    std::shared_ptr<shared_memory> memory;
    std::vector<std::string> regions;
  };

  machine& on_;
  std::string name_;
  sqlite3_vfs vfs_{};
  std::vector<handle*> handles_;
  bool dead_ = false;
  int countdown_ = 0;
  std::function<void()> then_;
  std::vector<frozen_memory> frozen_;
};

}  // namespace settle::sim
