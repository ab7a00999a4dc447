// The disk of a simulated machine: every file has a durable image and a volatile one, and remembers what
// was written since it was last synced.
//
// At a power loss each unsynced write is, by the seed, kept, dropped or torn (some of its 512-byte
// sectors arrive); what was synced always stays. Creating and deleting a file is a write to the
// directory, which has its own sync. Nothing here comes from the wall clock or from real randomness.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "settle/testing.hpp"

namespace settle::sim {

struct handle;  // an open file: sim_vfs.hpp

// The wal-index of one database: memory that its connections share. Gone with its last user.
struct shared_memory {
  std::vector<std::unique_ptr<char[]>> regions;
  std::size_t region_bytes = 0;
  std::vector<handle*> users;
};

struct unsynced_change {
  std::int64_t offset = 0;  // the new length, if it is a truncation
  std::string bytes;
  bool truncation = false;
};

// A file, whatever it is called and whether or not it still has a name.
struct inode {
  std::string durable;
  std::string current;  // what programs see
  std::vector<unsynced_change> unsynced;
  std::vector<handle*> open;  // for SQLite's file locks
  std::shared_ptr<shared_memory> memory;

  void write(std::int64_t offset, std::string_view bytes);
  void truncate(std::int64_t length);
  void sync();
};

using inode_ptr = std::shared_ptr<inode>;
using directory = std::map<std::string, inode_ptr, std::less<>>;

// Trouble to come. A countdown of 0 means never; 1 means the next one.
struct disk_faults {
  std::int64_t bytes_free = std::numeric_limits<std::int64_t>::max();  // for growing files
  int failing_write = 0;
  int failing_sync = 0;
  int failing_read = 0;
};

class disk {
 public:
  static constexpr std::int64_t sector_bytes = 512;

  explicit disk(std::uint64_t seed) : random_(seed) {}

  inode_ptr find(std::string_view name) const;
  inode_ptr create(const std::string& name);
  void remove(const std::string& name);
  void sync_directory() { durable_names_ = names_; }

  // Every file becomes what of it has reached the disk. Whoever has one open must be dead by now.
  void lose_power();

  disk_faults faults;
  std::uint64_t operations = 0;  // changes so far: a cheap witness that two runs did the same

 private:
  void settle_file(inode& file);
  void tear(std::string& image, const unsynced_change& change);

  testing::seeded_random random_;
  directory names_;
  directory durable_names_;
};

}  // namespace settle::sim
