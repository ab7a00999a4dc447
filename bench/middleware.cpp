// SQLite: what an Idempotency-Key adds to a request.
#include "middleware.hpp"

#include "settle/sqlite.hpp"

namespace {

void run(const bench::options& opts) {
  const auto db = settle::sqlite::open(opts.folder / "shop.db");
  settle::migrate(*db);
  auto tx = db->begin();
  tx.execute("create table orders (id integer primary key, total_cents integer not null)");
  tx.commit();
  bench::middleware_shop shop(*db);
  bench::write(opts, {shop.measure("middleware", opts.quick ? 20 : 1000)});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
