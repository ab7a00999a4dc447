// The plain SQLite C interface, as a careful programmer would use it for speed: prepared statements, bound
// without copies, batches in one transaction, the same durability as Settle's own connections.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace bench {

class raw_statement {
 public:
  raw_statement(sqlite3* db, const char* sql);

  raw_statement& bind(int index, std::string_view text);  // must stay valid until run()
  raw_statement& bind(int index, std::int64_t number);
  raw_statement& bind_bytes(int index, std::string_view bytes);
  void run();

 private:
  struct finalize {
    void operator()(sqlite3_stmt* stmt) const noexcept { sqlite3_finalize(stmt); }
  };
  sqlite3* db_;
  std::unique_ptr<sqlite3_stmt, finalize> stmt_;
};

class raw_database {
 public:
  // WAL, synchronous=FULL, a checkpoint every 1000 pages; waits up to 10 s for other writers.
  explicit raw_database(const std::string& path);

  raw_statement prepare(const char* sql) { return {db_.get(), sql}; }
  void run(const char* sql);  // without parameters; may be several statements
  void begin() { begin_.run(); }
  void commit() { commit_.run(); }

 private:
  struct close {
    void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
  };
  std::unique_ptr<sqlite3, close> db_;
  raw_statement begin_;
  raw_statement commit_;
};

}  // namespace bench
