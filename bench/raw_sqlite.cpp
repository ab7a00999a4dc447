#include "raw_sqlite.hpp"

#include <stdexcept>

namespace bench {
namespace {

[[noreturn]] void fail(sqlite3* db) {
  throw std::runtime_error(std::string("SQLite: ") + sqlite3_errmsg(db));
}

sqlite3* open(const std::string& path) {
  sqlite3* db = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(path.c_str(), &db, flags, nullptr) != SQLITE_OK) fail(db);
  sqlite3_busy_timeout(db, 10'000);
  const char* settings =
      "pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 1000";
  if (sqlite3_exec(db, settings, nullptr, nullptr, nullptr) != SQLITE_OK) fail(db);
  return db;
}

}  // namespace

raw_statement::raw_statement(sqlite3* db, const char* sql) : db_(db) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr) != SQLITE_OK) fail(db);
  stmt_.reset(made);
}

raw_statement& raw_statement::bind(int index, std::string_view text) {
  sqlite3_bind_text64(stmt_.get(), index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

raw_statement& raw_statement::bind(int index, std::int64_t number) {
  sqlite3_bind_int64(stmt_.get(), index, number);
  return *this;
}

raw_statement& raw_statement::bind_bytes(int index, std::string_view bytes) {
  sqlite3_bind_blob64(stmt_.get(), index, bytes.data(), bytes.size(), SQLITE_STATIC);
  return *this;
}

void raw_statement::run() {
  int step;
  while ((step = sqlite3_step(stmt_.get())) == SQLITE_ROW) {
  }
  sqlite3_reset(stmt_.get());
  if (step != SQLITE_DONE) fail(db_);
}

raw_database::raw_database(const std::string& path)
    : db_(open(path)), begin_(db_.get(), "begin immediate"), commit_(db_.get(), "commit") {}

void raw_database::run(const char* sql) {
  if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(db_.get());
}

}  // namespace bench
