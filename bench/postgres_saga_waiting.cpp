// A million waiting sagas on PostgreSQL.
#include "raw_postgres.hpp"
#include "sagas.hpp"
#include "settle/postgres.hpp"

namespace {

void load(const std::string& conninfo, std::int64_t sagas) {
  bench::raw_connection raw(conninfo);
  const auto numbers = "generate_series(1, " + std::to_string(sagas) + ") i";
  raw.run("set synchronous_commit = off");
  raw.run("create temp table first as select * from settle.sagas where entity_id = 'order-0'");
  raw.run(
      "insert into settle.sagas (no, id, kind, shard, entity_id, input, due_at, created_at, updated_at) "
      "overriding "
      "system value select no + i, gen_random_uuid(), kind, i % 16, 'order-' || i, "
      "convert_to('order-' || i || substr(convert_from(input, 'UTF8'), 8), 'UTF8'), due_at + i, created_at, "
      "updated_at from first, " +
      numbers);
  raw.run(
      "insert into settle.saga_journal (no, n, kind, scope, name, input, result, at, epoch) "
      "select no + i, n, kind, scope, name, convert_to('order-' || i, 'UTF8'), result, at, epoch "
      "from settle.saga_journal, " +
      numbers + " where no = (select no from first)");
  raw.run(
      "insert into settle.saga_waits (no, n, host, type, key) "
      "select no + i, n, host, type, 'order-' || i from settle.saga_waits, " +
      numbers + " where no = (select no from first)");
  for (const char* table : {"sagas", "saga_journal", "saga_waits"})
    raw.run(std::string("vacuum analyze settle.") + table);
  raw.run("checkpoint");
}

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const bench::scratch own(server, "saga_waiting");
  bench::raw_connection(own.conninfo())
      .run(
          "create table shipments (id bigint generated always as identity primary key, order_id text not "
          "null)");
  return bench::waiting_sagas(
      opts, "postgres_saga_waiting", [&] { return settle::postgres::open(own.conninfo()); },
      [&](std::int64_t n) { load(own.conninfo(), n); });
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
