#include "io_counts.hpp"

#include <sqlite3.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace {

std::atomic<std::int64_t> commits{0};
std::atomic<std::int64_t> syncs{0};
std::atomic<std::int64_t> bytes_written{0};

int committed(void*) {
  commits.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

int hook_connection(sqlite3* db, const char**, const void*) {
  sqlite3_commit_hook(db, committed, nullptr);
  return SQLITE_OK;
}

ssize_t counted(ssize_t written) {
  if (written > 0) bytes_written.fetch_add(written, std::memory_order_relaxed);
  return written;
}

}  // namespace

// The program's own definitions come before those of the C library, also for libsqlite3.so.
extern "C" {

int fsync(int fd) {
  syncs.fetch_add(1, std::memory_order_relaxed);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

int fdatasync(int fd) {
  syncs.fetch_add(1, std::memory_order_relaxed);
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  return counted(::syscall(SYS_pwrite64, fd, data, size, at));
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  return counted(::syscall(SYS_pwrite64, fd, data, size, at));
}
}

namespace bench {

void count_commits() {
  using entry_point = void (*)();
  sqlite3_auto_extension(reinterpret_cast<entry_point>(hook_connection));
}

io_counts io_now() { return {commits.load(), syncs.load(), bytes_written.load()}; }

}  // namespace bench
