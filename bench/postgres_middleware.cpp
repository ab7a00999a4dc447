// PostgreSQL: what an Idempotency-Key adds to a request.
#include "middleware.hpp"
#include "raw_postgres.hpp"
#include "settle/postgres.hpp"

namespace {

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const bench::scratch own(server, "middleware");
  bench::raw_connection(own.conninfo())
      .run("create table orders (id bigint primary key, total_cents bigint not null)");
  const auto db = settle::postgres::open(own.conninfo());
  bench::middleware_shop shop(*db);
  return {shop.measure("postgres_middleware", opts.quick ? 20 : 1000)};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
