// Thin ownership of SQLite's C handles, and its result codes as settle errors.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

namespace settle::inline v0::sqlite {

struct close_handle {
  void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
  void operator()(sqlite3_stmt* stmt) const noexcept { sqlite3_finalize(stmt); }
};
using handle = std::unique_ptr<sqlite3, close_handle>;
using prepared_handle = std::unique_ptr<sqlite3_stmt, close_handle>;

// Which file, and through which VFS; empty: the default one.
struct location {
  std::string path;
  std::string vfs = {};
};

// Opens a file with Settle's settings: synced commits, and no checkpoint that is not ours.
handle open_handle(const location& where, int busy_ms);

// WAL mode is a property of the file: switched on once, by whoever creates it.
bool in_wal_mode(sqlite3* db);
void switch_to_wal(sqlite3* db);

// Throws the settle::error for the connection's last failure. `during` is what was attempted.
[[noreturn]] void throw_last_error(sqlite3* db, std::string_view during);

// The same for a failed COMMIT, where an I/O failure leaves the outcome unknown.
[[noreturn]] void throw_commit_error(sqlite3* db);

// Runs one statement without parameters or rows.
void run(sqlite3* db, const char* sql);

// What a pragma answers, as text.
std::string read_pragma(sqlite3* db, const char* sql);

}  // namespace settle::inline v0::sqlite
