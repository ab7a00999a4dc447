#include "sqlite/handle.hpp"

#include <fmt/format.h>

#include "settle/error.hpp"

namespace settle::inline v0::sqlite {
namespace {

errc code_of(int extended, std::string_view text) {
  switch (extended & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return errc::store_busy;
    case SQLITE_CONSTRAINT:
      return errc::constraint_violated;
    case SQLITE_FULL:
      return errc::store_full;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return errc::store_corrupt;
    case SQLITE_INTERRUPT:
      return errc::cancelled;
    case SQLITE_AUTH:
      return errc::transaction_control;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_NOMEM:
    case SQLITE_PROTOCOL:
      return errc::store_unavailable;
    case SQLITE_TOOBIG:
      return errc::invalid_argument;
    default:
      break;
  }
  const bool ours = text.starts_with("no such table: settle_") || text.starts_with("no such table: broker_");
  return ours ? errc::schema_missing : errc::statement_failed;
}

std::string describe(sqlite3* db, std::string_view during) {
  const char* file = sqlite3_db_filename(db, "main");
  return fmt::format("{} on {}: {} (SQLite {})", during, file != nullptr ? file : "?", sqlite3_errmsg(db),
                     sqlite3_extended_errcode(db));
}

// A process may have died between writing its commit to the log and syncing it. Whoever opens the file next
// recovers the log, and the commit is there to be seen, but SQLite does not sync it then: a power cut could
// still take away what a conflict has just confirmed. So what we can see is made durable before we use it.
void sync_log(sqlite3* db) {
  run(db, "select 1 from sqlite_master limit 1");  // recovery happens at the first read
  sqlite3_file* log = nullptr;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  const bool open = log != nullptr && log->pMethods != nullptr;
  if (open && log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) != SQLITE_OK)
    throw error(errc::store_unavailable,
                fmt::format("cannot sync the log of {}", sqlite3_db_filename(db, "main")));
}

}  // namespace

void throw_last_error(sqlite3* db, std::string_view during) {
  const auto code = code_of(sqlite3_extended_errcode(db), sqlite3_errmsg(db));
  throw error(code, describe(db, during));
}

void throw_commit_error(sqlite3* db) {
  const auto code = code_of(sqlite3_extended_errcode(db), sqlite3_errmsg(db));
  const bool decided = code == errc::constraint_violated || code == errc::store_busy;
  if (decided) throw error(code, describe(db, "COMMIT"));
  throw error::with_unknown_outcome(code, describe(db, "COMMIT"));
}

void run(sqlite3* db, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) throw_last_error(db, sql);
}

handle open_handle(const location& where, int busy_ms) {
  sqlite3* raw = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int opened =
      sqlite3_open_v2(where.path.c_str(), &raw, flags, where.vfs.empty() ? nullptr : where.vfs.c_str());
  handle db(raw);
  if (opened != SQLITE_OK) {
    const std::string why = raw != nullptr ? sqlite3_errmsg(raw) : sqlite3_errstr(opened);
    throw error(errc::store_unavailable, fmt::format("cannot open {}: {}", where.path, why));
  }
  sqlite3_busy_timeout(db.get(), busy_ms);
  sqlite3_db_config(db.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_wal_autocheckpoint(db.get(), 0);
  run(db.get(), "pragma synchronous = full");
  run(db.get(), "pragma foreign_keys = on");
  sync_log(db.get());
  return db;
}

std::string read_pragma(sqlite3* db, const char* sql) {
  std::string answer;
  const auto read = [](void* out, int, char** columns, char**) {
    *static_cast<std::string*>(out) = columns[0];
    return 0;
  };
  if (sqlite3_exec(db, sql, read, &answer, nullptr) != SQLITE_OK) throw_last_error(db, sql);
  return answer;
}

bool in_wal_mode(sqlite3* db) { return read_pragma(db, "pragma journal_mode") == "wal"; }

void switch_to_wal(sqlite3* db) {
  run(db, "pragma journal_mode = wal");
  if (!in_wal_mode(db))
    throw error(errc::store_unavailable, "the file cannot be switched to write-ahead logging");
}

}  // namespace settle::inline v0::sqlite
