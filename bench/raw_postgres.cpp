#include "raw_postgres.hpp"

#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "settle/postgres.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;

struct clear_result {
  void operator()(PGresult* rows) const noexcept { PQclear(rows); }
};
using rows = std::unique_ptr<PGresult, clear_result>;

rows check(PGconn* conn, PGresult* answer) {
  rows owned(answer);
  const auto status = PQresultStatus(answer);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) throw std::runtime_error(PQerrorMessage(conn));
  return owned;
}

std::int64_t big_endian(const char* bytes) {
  std::int64_t number = 0;
  for (int i = 0; i < 8; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

}  // namespace

raw_connection::raw_connection(const std::string& conninfo) : conn_(PQconnectdb(conninfo.c_str())) {
  if (PQstatus(conn_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(conn_.get()));
  run("set client_min_messages = warning");
}

std::string raw_connection::run(const std::string& sql) {
  const auto answer = check(conn_.get(), PQexec(conn_.get(), sql.c_str()));
  return PQntuples(answer.get()) > 0 ? PQgetvalue(answer.get(), 0, 0) : "";
}

void raw_connection::prepare(const char* name, const char* sql) {
  check(conn_.get(), PQprepare(conn_.get(), name, sql, 0, nullptr));
}

void raw_connection::run_prepared(const char* name, const std::vector<std::string>& values) {
  std::vector<const char*> pointers;
  for (const auto& one : values) pointers.push_back(one.c_str());
  check(conn_.get(), PQexecPrepared(conn_.get(), name, static_cast<int>(pointers.size()), pointers.data(),
                                    nullptr, nullptr, 1));
}

void raw_connection::run_pipelined(const std::vector<call>& prepared) {
  auto* conn = conn_.get();
  const auto sent = [&](int accepted) {
    if (accepted == 0) throw std::runtime_error(PQerrorMessage(conn));
  };
  sent(PQenterPipelineMode(conn));
  sent(PQsendQueryParams(conn, "begin", 0, nullptr, nullptr, nullptr, nullptr, 1));
  std::vector<const char*> pointers;
  for (const auto& one : prepared) {
    pointers.clear();
    for (const auto& value : one.values) pointers.push_back(value.c_str());
    sent(PQsendQueryPrepared(conn, one.name, static_cast<int>(pointers.size()), pointers.data(), nullptr,
                             nullptr, 1));
  }
  sent(PQsendQueryParams(conn, "commit", 0, nullptr, nullptr, nullptr, nullptr, 1));
  sent(PQpipelineSync(conn));
  for (std::size_t i = 0; i < prepared.size() + 2; ++i) {
    check(conn, PQgetResult(conn));
    const rows none(PQgetResult(conn));  // the end of this statement's results
  }
  const rows sync(PQgetResult(conn));
  sent(PQexitPipelineMode(conn));
}

std::int64_t raw_connection::read_outbox(std::int64_t after) {
  if (!reads_outbox_) {
    run("set enable_seqscan = off; set plan_cache_mode = force_generic_plan; set jit = off");
    prepare(
        "page",
        "select seq, lane, event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers, "
        "created_at, payload from settle.outbox where seq > $1 order by seq limit 1000");
    reads_outbox_ = true;
  }
  for (std::int64_t count = 0;;) {
    const auto text = std::to_string(after);
    const char* value = text.c_str();
    const auto page = check(conn_.get(), PQexecPrepared(conn_.get(), "page", 1, &value, nullptr, nullptr, 1));
    const int found = PQntuples(page.get());
    if (found == 0) return count;
    count += found;
    after = big_endian(PQgetvalue(page.get(), found - 1, 0));
  }
}

scratch::scratch(const std::string& server, const std::string& name)
    : server_(server), name_("settle_bench_" + name) {
  raw_connection admin(server_);
  admin.run("drop database if exists " + name_ + " with (force)");
  admin.run("create database " + name_);
  settle::migrate(*settle::postgres::open(conninfo()));
}

scratch::~scratch() {
  try {
    raw_connection(server_).run("drop database " + name_ + " with (force)");
  } catch (const std::exception&) {  // it goes with the next run
  }
}

int run_on_postgres(int argc, char** argv,
                    const std::function<std::vector<report>(const options&, const std::string&)>& body) {
  return run_program(argc, argv, [&](const options& opts) {
    const char* server = std::getenv("SETTLE_TEST_POSTGRES");
    const bool there = server != nullptr && *server != '\0';
    write(opts, there ? body(opts, server) : std::vector<report>{});
  });
}

void fill_outbox(raw_connection& raw, std::int64_t events) {
  raw.run(
      "insert into settle.outbox (topic, event_type, aggregate_id, payload) "
      "select 'orders', 'order.placed', 'order-' || (i % 1000), decode(repeat('61', 256), 'hex') "
      "from generate_series(1, " +
      std::to_string(events) + ") i");
}

std::string filled_payload() { return std::string(256, 'a'); }

void keep_processor_time_only(report& of) {
  std::erase_if(of.counters, [](const counter& one) { return !one.name.ends_with("_cpu_us_per_unit"); });
}

std::int64_t wal_position(raw_connection& raw) {
  return raw.number("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn");
}

server_counts count_without_others(raw_connection& raw) {
  const auto deadline = clock::now() + 10s;
  while (raw.number("select count(*) from pg_stat_activity where datname = current_database() "
                    "and backend_type = 'client backend' and pid <> pg_backend_pid()") > 0) {
    if (clock::now() > deadline) throw std::runtime_error("other connections to the bench's database stay");
    std::this_thread::sleep_for(10ms);
  }
  constexpr int version_15 = 150000, version_18 = 180000;
  const int version = PQserverVersion(raw.get());
  if (version >= version_15)
    raw.run("select pg_stat_force_next_flush()");
  else
    std::this_thread::sleep_for(1s);  // its statistics are collected by a process, somewhat later
  server_counts counted;
  counted.wal_bytes = wal_position(raw);
  counted.transactions = raw.number(
      "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()");
  counted.syncs =
      raw.number(version < version_18 ? "select wal_sync from pg_stat_wal"
                                      : "select sum(fsyncs) from pg_stat_io where object = 'wal'");
  counted.page_images = raw.number("select wal_fpi from pg_stat_wal");
  counted.pages_found =
      raw.number("select blks_hit from pg_stat_database where datname = current_database()");
  counted.pages_read =
      raw.number("select blks_read from pg_stat_database where datname = current_database()");
  return counted;
}

}  // namespace bench
