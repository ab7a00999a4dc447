// For tests of the doctor: what was found, and its fix run as a person would run it.
#pragma once

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "doctor/doctor.hpp"

namespace settle::test {

inline const doctor::finding* find(const doctor::findings& all, const std::string& code) {
  for (const auto& one : all)
    if (one.code == code) return &one;
  return nullptr;
}

// Everything that is not fine, for messages.
inline std::string complaints(const doctor::findings& all) {
  std::string out;
  for (const auto& one : all)
    if (one.level != doctor::severity::ok)
      out += std::string(doctor::to_string(one.level)) + " " + one.code + ": " + one.title + ": " + one.seen +
             "\n";
  return out;
}

// A session of the test's own, which keeps its transaction open.
class pg_session {
 public:
  explicit pg_session(const std::string& conninfo) : conn_(PQconnectdb(conninfo.c_str()), PQfinish) {
    PQsetNoticeProcessor(conn_.get(), [](void*, const char*) {}, nullptr);
  }
  std::string run(const std::string& sql) {
    const std::unique_ptr<PGresult, void (*)(PGresult*)> done(PQexec(conn_.get(), sql.c_str()), PQclear);
    const auto status = PQresultStatus(done.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
      throw std::runtime_error(sql + ": " + PQerrorMessage(conn_.get()));
    return PQntuples(done.get()) > 0 ? PQgetvalue(done.get(), 0, 0) : "";
  }

 private:
  std::unique_ptr<PGconn, void (*)(PGconn*)> conn_;
};

// Line by line in one session, as psql would.
inline void run_fix(const std::string& conninfo, const std::string& fix) {
  ASSERT_FALSE(fix.empty());
  pg_session session(conninfo);
  std::istringstream lines(fix);
  for (std::string line; std::getline(lines, line);) session.run(line);
}

// Some things (a reload, statistics, a killed session) take the server a moment.
template <class Condition>
bool eventually(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace settle::test
