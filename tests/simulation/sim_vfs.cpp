// The VFS: opens, reads, writes, syncs and locks, as SQLite's unix VFS does them.
#include "simulation/sim_vfs.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "simulation/sim_shm.hpp"
#include "simulation/sim_vfs_methods.hpp"

namespace settle::sim {
namespace {

struct open_file {
  sqlite3_file base;
  handle* state;
};

handle& of(sqlite3_file* file) { return *reinterpret_cast<open_file*>(file)->state; }
process& of(sqlite3_vfs* vfs) { return *static_cast<process*>(vfs->pAppData); }

// True for the one that a countdown was set to.
bool strikes(int& countdown) { return countdown > 0 && --countdown == 0; }

int close(sqlite3_file* file) {
  const std::unique_ptr<handle> one(&of(file));
  if (!one->owner->dead()) {
    one->detach_memory();
    std::erase(one->file->open, one.get());
    if (one->remove_on_close && !one->name.empty()) one->owner->files().remove(one->name);
  }
  one->owner->closed(one.get());
  return SQLITE_OK;
}

int read(sqlite3_file* file, void* into, int amount, sqlite3_int64 offset) {
  const auto& one = of(file);
  if (one.owner->dead() || strikes(one.owner->files().faults.failing_read)) return SQLITE_IOERR_READ;
  const auto& image = one.file->current;
  const auto size = static_cast<sqlite3_int64>(image.size());
  const auto there = static_cast<int>(std::clamp<sqlite3_int64>(size - offset, 0, amount));
  if (there > 0) std::memcpy(into, image.data() + offset, static_cast<std::size_t>(there));
  if (there == amount) return SQLITE_OK;
  std::memset(static_cast<char*>(into) + there, 0, static_cast<std::size_t>(amount - there));
  return SQLITE_IOERR_SHORT_READ;
}

int write(sqlite3_file* file, const void* from, int amount, sqlite3_int64 offset) {
  const auto& one = of(file);
  if (!one.owner->pass_point()) return SQLITE_IOERR_WRITE;
  auto& files = one.owner->files();
  if (strikes(files.faults.failing_write)) return SQLITE_IOERR_WRITE;
  ++files.operations;
  const std::string_view bytes(static_cast<const char*>(from), static_cast<std::size_t>(amount));
  const auto size = static_cast<sqlite3_int64>(one.file->current.size());
  const auto growth = std::max<sqlite3_int64>(0, offset + amount - size);
  const auto missing = std::max<sqlite3_int64>(0, growth - files.faults.bytes_free);
  const auto fits = std::max<sqlite3_int64>(0, amount - missing);
  if (fits > 0) one.file->write(offset, bytes.substr(0, static_cast<std::size_t>(fits)));
  files.faults.bytes_free -= growth - missing;
  if (missing > 0) return SQLITE_FULL;
  return one.owner->pass_point() ? SQLITE_OK : SQLITE_IOERR_WRITE;
}

int truncate(sqlite3_file* file, sqlite3_int64 length) {
  const auto& one = of(file);
  if (!one.owner->pass_point()) return SQLITE_IOERR_TRUNCATE;
  ++one.owner->files().operations;
  one.file->truncate(length);
  return one.owner->pass_point() ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

int sync(sqlite3_file* file, int) {
  auto& one = of(file);
  if (!one.owner->pass_point()) return SQLITE_IOERR_FSYNC;
  auto& files = one.owner->files();
  if (strikes(files.faults.failing_sync)) return SQLITE_IOERR_FSYNC;
  ++files.operations;
  one.file->sync();
  if (one.syncs_directory) {
    if (!one.owner->pass_point()) return SQLITE_IOERR_DIR_FSYNC;
    files.sync_directory();
    one.syncs_directory = false;
  }
  return one.owner->pass_point() ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  const auto& one = of(file);
  if (one.owner->dead()) return SQLITE_IOERR_FSTAT;
  *size = static_cast<sqlite3_int64>(one.file->current.size());
  return SQLITE_OK;
}

bool anyone_else(const handle& but, int at_least) {
  return std::ranges::any_of(but.file->open,
                             [&](const handle* other) { return other != &but && other->lock >= at_least; });
}

int lock(sqlite3_file* file, int wanted) {
  auto& one = of(file);
  if (one.owner->dead()) return SQLITE_IOERR_LOCK;
  if (one.lock >= wanted) return SQLITE_OK;
  if (wanted == SQLITE_LOCK_SHARED) {
    if (anyone_else(one, SQLITE_LOCK_PENDING)) return SQLITE_BUSY;
  } else {
    if (anyone_else(one, SQLITE_LOCK_RESERVED)) return SQLITE_BUSY;
    if (wanted == SQLITE_LOCK_EXCLUSIVE && anyone_else(one, SQLITE_LOCK_SHARED)) {
      one.lock = SQLITE_LOCK_PENDING;  // no new readers, so that it ends some day
      return SQLITE_BUSY;
    }
  }
  one.lock = wanted;
  return SQLITE_OK;
}

int unlock(sqlite3_file* file, int down_to) {
  auto& one = of(file);
  if (one.owner->dead()) return SQLITE_IOERR_UNLOCK;
  one.lock = std::min(one.lock, down_to);
  return SQLITE_OK;
}

int check_reserved(sqlite3_file* file, int* answer) {
  const auto& one = of(file);
  if (one.owner->dead()) return SQLITE_IOERR_CHECKRESERVEDLOCK;
  *answer = one.lock >= SQLITE_LOCK_RESERVED || anyone_else(one, SQLITE_LOCK_RESERVED);
  return SQLITE_OK;
}

int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file*) { return 4096; }
int characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int map(sqlite3_file* file, int region, int bytes, int extend, void volatile** out) {
  return shm_map(of(file), {region, bytes, extend != 0}, out);
}
int shm_lock_method(sqlite3_file* file, int offset, int n, int flags) {
  return shm_lock(of(file), offset, n, flags);
}
void shm_barrier(sqlite3_file*) {}
int unmap(sqlite3_file* file, int) {
  auto& one = of(file);
  if (!one.owner->dead()) one.detach_memory();
  one.memory.reset();
  return SQLITE_OK;
}

constexpr sqlite3_io_methods methods{
    2,      close,          read,    write,       truncate,        sync, file_size,       lock,
    unlock, check_reserved, control, sector_size, characteristics, map,  shm_lock_method, shm_barrier,
    unmap,  nullptr,        nullptr};

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto& owner = of(vfs);
  file->pMethods = nullptr;
  if (owner.dead()) return SQLITE_IOERR;
  auto one = std::make_unique<handle>();
  one->owner = &owner;
  if (name == nullptr) {
    one->file = std::make_shared<inode>();
  } else {
    one->name = name;
    one->file = owner.files().find(name);
    if (!one->file) {
      if ((flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
      if (!owner.pass_point()) return SQLITE_IOERR;
      ++owner.files().operations;
      one->file = owner.files().create(name);
    }
  }
  constexpr int journals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
  one->syncs_directory = (flags & SQLITE_OPEN_CREATE) != 0 && (flags & journals) != 0;
  one->remove_on_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
  one->file->open.push_back(one.get());
  owner.opened(one.get());
  file->pMethods = &methods;
  reinterpret_cast<open_file*>(file)->state = one.release();
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int remove(sqlite3_vfs* vfs, const char* name, int sync_directory) {
  auto& owner = of(vfs);
  if (!owner.pass_point()) return SQLITE_IOERR_DELETE;
  if (!owner.files().find(name)) return SQLITE_IOERR_DELETE_NOENT;
  ++owner.files().operations;
  owner.files().remove(name);
  if (sync_directory != 0) {
    if (!owner.pass_point()) return SQLITE_IOERR_DIR_FSYNC;
    owner.files().sync_directory();
  }
  return owner.pass_point() ? SQLITE_OK : SQLITE_IOERR_DELETE;
}

// As the unix VFS: an empty file counts as none.
int access(sqlite3_vfs* vfs, const char* name, int flags, int* answer) {
  auto& owner = of(vfs);
  if (owner.dead()) return SQLITE_IOERR_ACCESS;
  const auto found = owner.files().find(name);
  *answer = found != nullptr && (flags != SQLITE_ACCESS_EXISTS || !found->current.empty());
  return SQLITE_OK;
}

int full_path(sqlite3_vfs*, const char* name, int room, char* out) {
  if (std::strlen(name) >= static_cast<std::size_t>(room)) return SQLITE_CANTOPEN;
  std::strcpy(out, name);
  return SQLITE_OK;
}

int randomness(sqlite3_vfs*, int amount, char* out) {
  std::memset(out, 42, static_cast<std::size_t>(amount));
  return amount;
}

int sleep(sqlite3_vfs*, int microseconds) { return microseconds; }

int current_time(sqlite3_vfs*, sqlite3_int64* julian_ms) {
  *julian_ms = 212'000'000'000'000;
  return SQLITE_OK;
}

int last_error(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

void fill_vfs(sqlite3_vfs& table, process& owner) {
  table.iVersion = 2;
  table.szOsFile = sizeof(open_file);
  table.mxPathname = 512;
  table.zName = owner.vfs().c_str();
  table.pAppData = &owner;
  table.xOpen = open;
  table.xDelete = remove;
  table.xAccess = access;
  table.xFullPathname = full_path;
  table.xRandomness = randomness;
  table.xSleep = sleep;
  table.xGetLastError = last_error;
  table.xCurrentTimeInt64 = current_time;
}

}  // namespace settle::sim
