#include "sqlite/checkpointer.hpp"

namespace settle::inline v0::sqlite {

// While readers keep the log from starting over, try again only after it has grown by another quarter.
bool checkpointer::due(int pages_in_log) const {
  if (pages_in_log < pages_) return false;
  const std::scoped_lock lock(mutex_);
  return pages_in_log < tried_at_ || pages_in_log >= tried_at_ + pages_ / 4;
}

void checkpointer::run(sqlite3* writer, int pages_in_log) {
  const std::scoped_lock lock(mutex_);
  tried_at_ = pages_in_log;
  if (!worker_) worker_ = open_handle(where_, 0);
  sqlite::run(writer, "begin immediate");
  // PASSIVE never waits and never asks for the write lock, which is held just above.
  const int done =
      sqlite3_wal_checkpoint_v2(worker_.get(), "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  sqlite::run(writer, "rollback");
  if (done != SQLITE_OK && (done & 0xff) != SQLITE_BUSY) throw_last_error(worker_.get(), "checkpoint");
}

}  // namespace settle::inline v0::sqlite
