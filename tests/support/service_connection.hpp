// A service's own connection, on either database, with nothing of ours: it begins and ends its transactions,
// and Settle joins them.
#pragma once

#include <libpq-fe.h>
#include <sqlite3.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "settle/postgres.hpp"
#include "settle/sqlite.hpp"

namespace settle::test {

class service_connection {
 public:
  static service_connection to_postgres(const std::string& conninfo) {
    service_connection made;
    made.postgres_.reset(PQconnectdb(conninfo.c_str()));
    return made;
  }
  static service_connection to_sqlite(const std::string& path) {
    service_connection made;
    sqlite3* raw = nullptr;
    sqlite3_open(path.c_str(), &raw);
    made.sqlite_.reset(raw);
    sqlite3_busy_timeout(raw, 10'000);
    return made;
  }

  // Throws std::runtime_error with what the database says.
  void run(const std::string& sql) const {
    if (sqlite_) {
      if (sqlite3_exec(sqlite_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
        throw std::runtime_error(sqlite3_errmsg(sqlite_.get()));
      return;
    }
    const std::unique_ptr<PGresult, void (*)(PGresult*)> done(PQexec(postgres_.get(), sql.c_str()), PQclear);
    const auto how = PQresultStatus(done.get());
    if (how != PGRES_COMMAND_OK && how != PGRES_TUPLES_OK)
      throw std::runtime_error(PQerrorMessage(postgres_.get()));
    // The answer of PostgreSQL to the COMMIT of a transaction that has failed, and no error.
    if (sql == "commit" && std::string(PQcmdStatus(done.get())) != "COMMIT")
      throw std::runtime_error("COMMIT was answered with " + std::string(PQcmdStatus(done.get())));
  }

  void begin() const { run(sqlite_ ? "begin immediate" : "begin"); }

  std::shared_ptr<transaction> join(const environment& env = {}) const {
    if (sqlite_) return std::make_shared<sqlite::joined_transaction>(sqlite_.get(), env);
    return std::make_shared<postgres::joined_transaction>(postgres_.get(), env);
  }

 private:
  service_connection() = default;
  std::unique_ptr<PGconn, void (*)(PGconn*)> postgres_{nullptr, PQfinish};
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> sqlite_{nullptr, sqlite3_close};
};

}  // namespace settle::test
