// PostgreSQL: what an idempotency key adds to the smallest transaction there is, one bare order, with sixteen
// clients; and how fast a request that comes again is answered.
#include <atomic>

#include "clients.hpp"
#include "raw_postgres.hpp"
#include "settle/once.hpp"
#include "settle/postgres.hpp"

namespace {

constexpr int many = 16;
constexpr double fresh_target = 0.6;
constexpr double replay_target = 2;

class shop {
 public:
  explicit shop(const std::string& conninfo)
      : db_(settle::postgres::open(conninfo, {.connections_max = many})), raw_(conninfo) {
    raw_.run("create table orders (id bigint primary key, total_cents bigint not null)");
  }

  bench::report fresh(const bench::slice_plan& plan) {
    bench::logged by_ours(raw_), by_raw(raw_);
    const auto turns = bench::take_turns(
        plan.rounds,
        [&] { return by_ours.of([&] { return bench::in_parallel(plan, [&](int) { ask(++number_); }); }); },
        [&] { return by_raw.of([&] { return bench::in_parallel(plan, [&](int) { place_alone(); }); }); });
    auto r = bench::compare(turns, fresh_target);
    r.name = "postgres_once";
    r.what = "an order under a fresh key, clients: " + std::to_string(plan.clients) +
             "; raw: the same transaction with the order alone";
    r.unit = "requests/s";
    r.counters = {{"ours_wal_bytes_per_request", by_ours.per_unit()},
                  {"raw_wal_bytes_per_request", by_raw.per_unit()}};
    return r;
  }

  bench::report replayed(const bench::slice_plan& plan) {
    bench::in_parallel(plan, [&](int) { ask(++number_); });
    const auto turns = bench::take_turns(
        plan.rounds,
        [&] {
          std::atomic<std::int64_t> next = number_ - plan.clients * plan.each;
          return bench::in_parallel(plan, [&](int) { ask(++next); });
        },
        [&] { return bench::in_parallel(plan, [&](int) { ask(++number_); }); });
    auto r = bench::compare(turns, replay_target);
    r.name = "postgres_once_replay";
    r.what = "requests that were answered before; in place of raw: fresh ones";
    r.unit = "requests/s";
    r.counters.clear();
    return r;
  }

 private:
  static void insert(settle::transaction& tx, std::int64_t id) {
    tx.execute("insert into orders (id, total_cents) values ($1, $2)", {id, 4200});
  }

  void place_alone() {
    auto tx = db_->begin();
    insert(tx, ++number_);
    tx.commit();
  }

  void ask(std::int64_t id) {
    const auto key = "key " + std::to_string(id);
    settle::once(*db_, {"shop", "ann", key}, [&](settle::transaction& tx) {
      insert(tx, id);
      return settle::answer{.status = 201, .body = R"({"status":"placed"})"};
    });
  }

  std::unique_ptr<settle::database> db_;
  bench::raw_connection raw_;
  std::atomic<std::int64_t> number_ = 0;
};

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const bench::scratch own(server, "once");
  shop with(own.conninfo());
  const bench::slice_plan plan =
      opts.quick ? bench::slice_plan{1, many, 10} : bench::slice_plan{21, many, 100};
  return {with.fresh(plan), with.replayed(plan)};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
