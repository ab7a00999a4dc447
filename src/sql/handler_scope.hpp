// A handler has a transaction already. Another one on the same database would commit without it: on SQLite it
// would wait for the one it is in, on PostgreSQL its effects would stay when the batch rolls back and runs
// again.
#pragma once

#include <utility>

#include "settle/database.hpp"

namespace settle::sql {

// While it lives, this thread cannot begin a transaction on that database. It may read there, and sees what
// is committed: `has_read` says that it did.
class handler_scope {
 public:
  explicit handler_scope(const database& of, bool* has_read = nullptr)
      : before_(std::exchange(busy_with, &of)), read_before_(std::exchange(read, has_read)) {}
  ~handler_scope() {
    busy_with = before_;
    read = read_before_;
  }
  handler_scope(const handler_scope&) = delete;
  handler_scope& operator=(const handler_scope&) = delete;

  static bool covers(const database& which) { return busy_with == &which; }
  static void note_read(const database& which) {
    if (covers(which) && read != nullptr) *read = true;
  }

 private:
  friend class beside_handler;
  static inline thread_local const database* busy_with = nullptr;
  static inline thread_local bool* read = nullptr;
  const database* before_;
  bool* read_before_;
};

// Within it, it can: for what has to be committed whatever becomes of the handler, such as a lock.
class beside_handler {
 public:
  beside_handler() : before_(std::exchange(handler_scope::busy_with, nullptr)) {}
  ~beside_handler() { handler_scope::busy_with = before_; }
  beside_handler(const beside_handler&) = delete;
  beside_handler& operator=(const beside_handler&) = delete;

 private:
  const database* before_;
};

}  // namespace settle::sql
