#include <fmt/format.h>
#include <libpq-fe.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "scratch_databases.hpp"

namespace storm {
namespace {

// Outside of any transaction, where databases are made and dropped.
void run(const std::string& server, const std::string& sql) {
  const std::unique_ptr<PGconn, void (*)(PGconn*)> to(PQconnectdb(server.c_str()), PQfinish);
  const std::unique_ptr<PGresult, void (*)(PGresult*)> done(PQexec(to.get(), sql.c_str()), PQclear);
  if (PQresultStatus(done.get()) != PGRES_COMMAND_OK)
    throw std::runtime_error(std::string("--postgres: ") + PQerrorMessage(to.get()));
}

}  // namespace

scratch_databases::scratch_databases(std::string server, const std::vector<std::string>& services)
    : server_(std::move(server)) {
  if (server_.find("://") != std::string::npos)
    throw std::runtime_error("--postgres: please say it in libpq's keywords, 'host=… user=…'");
  for (const auto& service : services) {
    auto name = fmt::format("settle_storm_{}_{}", ::getpid(), service);
    std::ranges::replace(name, '-', '_');
    run(server_, "create database " + name);
    names_.push_back(name);
  }
}

std::vector<std::string> scratch_databases::conninfos() const {
  std::vector<std::string> all;
  for (const auto& name : names_) all.push_back(server_ + " dbname=" + name);
  return all;
}

void scratch_databases::drop() const {
  for (const auto& name : names_) run(server_, "drop database " + name + " with (force)");
}

}  // namespace storm
