// PostgreSQL: what publishing adds to the smallest transaction there is, one bare order: through the library
// with one client and with sixteen, and as one SQL statement with sixteen.
#include <atomic>

#include "clients.hpp"
#include "raw_postgres.hpp"
#include "service.hpp"
#include "settle/postgres.hpp"

namespace {

constexpr int many = 16;
constexpr int one_client_percent = 40;  // more than without the event, at most
constexpr int many_clients_percent = 50;
constexpr double one_statement_target = 0.55;

class shop {
 public:
  explicit shop(const std::string& conninfo)
      : conninfo_(conninfo),
        db_(settle::postgres::open(conninfo, {.connections_max = many})),
        raw_(conninfo) {
    raw_.run("create table orders (id bigint primary key, total_cents bigint not null)");
  }

  bench::report transactions(const bench::slice_plan& plan, int percent_more) {
    auto r =
        compare(plan, 100.0 / (100 + percent_more), [&](int) { place(true); }, [&](int) { place(false); });
    r.name = "postgres_emit_" + std::to_string(plan.clients);
    r.what = "an order and its event in one transaction, clients: " + std::to_string(plan.clients) +
             "; raw: the same transaction with the order alone";
    r.target = "<= +" + std::to_string(percent_more) + " %";
    return r;
  }

  bench::report one_statement(const bench::slice_plan& plan, double target) {
    std::vector<std::unique_ptr<bench::raw_connection>> clients;
    for (int n = 0; n < plan.clients; ++n) clients.push_back(prepared_client());
    const auto id = [&] { return std::to_string(++number_); };
    auto r = compare(
        plan, target,
        [&](int client) { clients[client]->run_prepared("publish", {id(), "4200", bench::payload()}); },
        [&](int client) { clients[client]->run_prepared("order", {id(), "4200"}); });
    r.name = "postgres_emit_statement";
    r.what = "an order and settle.publish in one SQL statement through libpq, clients: " +
             std::to_string(plan.clients) + "; raw: the same statement without publish";
    return r;
  }

 private:
  void place(bool with_event) {
    const std::int64_t id = ++number_;
    auto tx = db_->begin();
    tx.execute("insert into orders (id, total_cents) values ($1, $2)", {id, 4200});
    if (with_event) settle::publish(tx, bench::event_of(id));
    tx.commit();
  }

  std::unique_ptr<bench::raw_connection> prepared_client() const {
    auto made = std::make_unique<bench::raw_connection>(conninfo_);
    made->prepare("publish",
                  "with o as (insert into orders (id, total_cents) values ($1, $2) returning id) "
                  "select settle.publish('orders', 'order.placed', o.id::text, $3::text) from o");
    made->prepare("order",
                  "with o as (insert into orders (id, total_cents) values ($1, $2) returning id) "
                  "select o.id from o");
    return made;
  }

  bench::report compare(const bench::slice_plan& plan, double target, const std::function<void(int)>& ours,
                        const std::function<void(int)>& raw) {
    bench::logged by_ours(raw_), by_raw(raw_);
    const auto turns = bench::take_turns(
        plan.rounds, [&] { return by_ours.of([&] { return bench::in_parallel(plan, ours); }); },
        [&] { return by_raw.of([&] { return bench::in_parallel(plan, raw); }); });
    auto r = bench::compare(turns, target);
    r.unit = "commits/s";
    // The server writes, not this process.
    r.counters = {{"ours_wal_bytes_per_commit", by_ours.per_unit()},
                  {"raw_wal_bytes_per_commit", by_raw.per_unit()}};
    return r;
  }

  std::string conninfo_;
  std::unique_ptr<settle::database> db_;
  bench::raw_connection raw_;
  std::atomic<std::int64_t> number_ = 0;
};

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const bench::scratch own(server, "emit");
  shop with(own.conninfo());
  const bench::slice_plan one = opts.quick ? bench::slice_plan{1, 1, 20} : bench::slice_plan{21, 1, 200};
  const bench::slice_plan sixteen =
      opts.quick ? bench::slice_plan{1, many, 10} : bench::slice_plan{21, many, 100};
  return {with.transactions(one, one_client_percent), with.transactions(sixteen, many_clients_percent),
          with.one_statement(sixteen, one_statement_target)};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
