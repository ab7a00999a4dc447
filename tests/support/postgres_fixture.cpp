#include "support/postgres_fixture.hpp"

#include <libpq-fe.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace settle::test {
namespace {

const std::string servers = SETTLE_SOURCE "/tools/servers";

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string all;
  char piece[512];
  for (std::size_t got; (got = std::fread(piece, 1, sizeof piece, pipe.get())) > 0;) all.append(piece, got);
  return all;
}

// From lines like: export NAME='value'
std::string exported(const std::string& lines, const std::string& name) {
  const auto start = "export " + name + "='";
  const auto at = lines.find(start);
  if (at == std::string::npos) return {};
  const auto from = at + start.size();
  return lines.substr(from, lines.find('\'', from) - from);
}

std::string conninfo_named(const std::string& name) {
  if (const char* set = std::getenv(name.c_str())) return set;
  static const auto lines = output_of("'" + servers + "' env");
  return exported(lines, name);
}

std::string missing(const std::string& conninfo, const std::string& name) {
  if (!conninfo.empty()) return {};
  const auto why = name + " is not running; `tools/servers up " + name + "` starts it";
  const char* ci = std::getenv("CI");
  if (ci != nullptr && std::string(ci) == "true") throw std::runtime_error(why + ", and CI=true");
  return why;
}

}  // namespace

std::string postgres_conninfo() { return conninfo_named("SETTLE_TEST_POSTGRES"); }
std::string pgbouncer_conninfo() { return conninfo_named("SETTLE_TEST_PGBOUNCER"); }
std::string postgres_missing() { return missing(postgres_conninfo(), "postgres"); }
std::string pgbouncer_missing() { return missing(pgbouncer_conninfo(), "pgbouncer"); }
std::string redis_url() { return conninfo_named("SETTLE_TEST_REDIS"); }
std::string redis_missing() { return missing(redis_url(), "redis"); }

std::string word_of(const std::string& conninfo, const std::string& keyword) {
  const auto at = conninfo.rfind(keyword + "=");
  if (at == std::string::npos) return {};
  const auto from = at + keyword.size() + 1;
  return conninfo.substr(from, conninfo.find(' ', from) - from);
}

std::string run_sql(const std::string& conninfo, const std::string& sql) {
  const std::unique_ptr<PGconn, void (*)(PGconn*)> conn(PQconnectdb(conninfo.c_str()), PQfinish);
  PQsetNoticeProcessor(conn.get(), [](void*, const char*) {}, nullptr);
  const std::unique_ptr<PGresult, void (*)(PGresult*)> done(PQexec(conn.get(), sql.c_str()), PQclear);
  const auto status = PQresultStatus(done.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    throw std::runtime_error(sql + ": " + PQerrorMessage(conn.get()));
  return PQntuples(done.get()) > 0 ? PQgetvalue(done.get(), 0, 0) : "";
}

scratch_database::scratch_database(const std::string& server) : server_(server) {
  static std::atomic<int> made = 0;
  name_ = "test_" + std::to_string(::getpid()) + "_" + std::to_string(++made);
  run_sql(server_, "drop database if exists " + name_);
  run_sql(server_, "create database " + name_ + " template template0");
}

scratch_database::~scratch_database() {
  try {
    run_sql(server_, "drop database if exists " + name_ + " with (force)");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
}

void scratch_database::forget_events() const {
  run(R"(
    do $$
    declare one text;
    begin
      for one in select c.relname from pg_class c
                 where c.relnamespace = to_regnamespace('settle') and c.relkind in ('r', 'p')
                   and c.relname not in ('migrations', 'identity', 'outbox_leaves') and not c.relispartition
      loop execute format('delete from settle.%I', one);
      end loop;
      if to_regclass('settle.outbox_ticks') is not null then
        insert into settle.outbox_ticks (n, snap, seq_high, xid_high, at)
        select 0, pg_current_snapshot(), last_value, pg_current_xact_id(), 0 from settle.outbox_seq;
      end if;
    end $$)");
}

private_server::private_server(const std::string& which, std::string rabbitmq)
    : folder_("/var/tmp/settle-private-" + std::to_string(::getpid()) + "-" +
              std::to_string(::time(nullptr))),
      rabbitmq_(std::move(rabbitmq)) {
  command("up " + which);
}

private_server::~private_server() {
  try {
    command("down");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
}

void private_server::command(const std::string& words) const {
  const auto line = "SETTLE_SERVERS_DIR='" + folder_ + "' SETTLE_SERVERS_RABBITMQ='" + rabbitmq_ + "' '" +
                    servers + "' " + words;
  if (std::system(line.c_str()) != 0) throw std::runtime_error("failed: " + line);
}

std::string private_server::variable(const std::string& name) const {
  return exported(output_of("SETTLE_SERVERS_DIR='" + folder_ + "' '" + servers + "' env"), name);
}

std::string private_server::conninfo() const { return variable("SETTLE_TEST_POSTGRES"); }
std::string private_server::standby_conninfo() const { return variable("SETTLE_TEST_POSTGRES_STANDBY"); }
std::string private_server::redis_url() const { return variable("SETTLE_TEST_REDIS"); }
std::string private_server::rabbitmq_url(int node) const {
  return variable("SETTLE_TEST_RABBITMQ" + (node == 0 ? std::string() : std::to_string(node)));
}
std::string private_server::kafka_url() const { return variable("SETTLE_TEST_KAFKA"); }
std::string private_server::kafka_cluster_url() const { return variable("SETTLE_TEST_KAFKA_CLUSTER"); }

}  // namespace settle::test
