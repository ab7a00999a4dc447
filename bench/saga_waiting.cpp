// A million waiting sagas on SQLite.
#include "raw_sqlite.hpp"
#include "sagas.hpp"
#include "settle/sqlite.hpp"

namespace {

void load(const std::string& path, std::int64_t sagas) {
  bench::raw_database raw(path);
  const auto count = std::to_string(sagas);
  const auto numbers =
      "with recursive i(i) as (select 1 union all select i + 1 from i where i < " + count + ") ";
  raw.run("pragma synchronous = off; pragma cache_size = -400000");
  raw.run(
      ("create temp table first as select * from settle_sagas where entity_id = 'order-0'; "
       "insert into settle_sagas (no, id, kind, shard, entity_id, input, due_at, created_at, updated_at) " +
       numbers +
       "select no + i, substr(id, 1, 24) || printf('%012x', i), kind, i % 16, 'order-' || i, "
       "cast('order-' || i || substr(cast(input as text), 8) as blob), due_at + i, created_at, updated_at "
       "from first, i")
          .c_str());
  raw.run(("insert into settle_saga_journal (no, n, kind, scope, name, input, result, at, epoch) " + numbers +
           "select no + i, n, kind, scope, name, cast('order-' || i as blob), result, at, epoch "
           "from settle_saga_journal, i where no = (select no from first)")
              .c_str());
  raw.run(("insert into settle_saga_waits (no, n, host, type, key) " + numbers +
           "select no + i, n, host, type, 'order-' || i from settle_saga_waits, i where no = (select no from "
           "first)")
              .c_str());
  raw.run("pragma wal_checkpoint(truncate)");
}

void run(const bench::options& opts) {
  const std::string path = opts.folder / "waiting.db";
  const auto open = [&] {
    auto db = settle::sqlite::open(path);
    settle::migrate(*db);
    auto tx = db->begin();
    tx.execute("create table if not exists shipments (id integer primary key, order_id text not null)");
    tx.commit();
    return db;
  };
  bench::write(opts,
               bench::waiting_sagas(opts, "saga_waiting", open, [&](std::int64_t n) { load(path, n); }));
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
