// What this process has written and synced, counted where it happens: io_counts.cpp puts a counter in front
// of the system calls that SQLite makes, and a commit hook on every connection, ours and the raw ones alike.
#pragma once

#include <cstdint>

namespace bench {

struct io_counts {
  std::int64_t commits = 0;        // write transactions
  std::int64_t syncs = 0;          // fsync and fdatasync
  std::int64_t bytes_written = 0;  // to the log, and to the database by checkpoints

  friend io_counts operator-(const io_counts& a, const io_counts& b) {
    return {a.commits - b.commits, a.syncs - b.syncs, a.bytes_written - b.bytes_written};
  }
  friend io_counts operator+(const io_counts& a, const io_counts& b) {
    return {a.commits + b.commits, a.syncs + b.syncs, a.bytes_written + b.bytes_written};
  }
};

// Counts the commits of every connection that is opened from now on.
void count_commits();

io_counts io_now();

}  // namespace bench
