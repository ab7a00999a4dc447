// Moves the write-ahead log back into the database file, safely on every SQLite version.
//
// SQLite before 3.51.3 can corrupt a database if a commit resets the log while a checkpoint runs. So a
// checkpoint here runs only while the caller's connection holds the write lock: nobody can commit.
#pragma once

#include <mutex>
#include <string>

#include "sqlite/handle.hpp"

namespace settle::inline v0::sqlite {

class checkpointer {
 public:
  checkpointer(location where, int pages) : where_(std::move(where)), pages_(pages) {}

  bool due(int pages_in_log) const;

  // `writer` is idle (no transaction); it holds the write lock for the time of the checkpoint.
  // Readers are not waited for: what they still need stays in the log until a later checkpoint.
  void run(sqlite3* writer, int pages_in_log);

 private:
  location where_;
  int pages_;
  mutable std::mutex mutex_;
  handle worker_;
  int tried_at_ = 0;  // pages in the log at the last attempt
};

}  // namespace settle::inline v0::sqlite
