// What a relay that has nothing to do asks of PostgreSQL: statements, counted on the line, and transactions,
// counted by the server.
#include "harness.hpp"
#include "raw_postgres.hpp"
#include "service.hpp"
#include "settle/postgres.hpp"
#include "statement_counter.hpp"

namespace {

using namespace std::chrono_literals;
constexpr double target_per_second = 5;

struct idle_time {
  std::chrono::milliseconds before;  // while events flow it looks more often, so some silence first
  std::chrono::milliseconds counted;
};

// Also that the counter counts at all.
void relay_one(settle::database& db, bench::nowhere& destination) {
  auto tx = db.begin();
  settle::publish(tx, bench::event_of(1));
  tx.commit();
  const auto deadline = bench::clock::now() + 30s;
  while (destination.taken == 0) {
    if (bench::clock::now() > deadline) throw std::runtime_error("an event did not arrive within 30 s");
    std::this_thread::sleep_for(1ms);
  }
}

struct counts {
  std::int64_t statements;
  std::int64_t transactions;
};

// Asked from another database. What the server processes have not reported yet, of a second at most, is
// missing in both counts whose difference is taken.
counts count(const bench::statement_counter& line, bench::raw_connection& elsewhere) {
  return {line.statements(), elsewhere.number("select xact_commit + xact_rollback from pg_stat_database "
                                              "where datname = 'settle_bench_idle'")};
}

bench::report report_of(const counts& from, const counts& to, double seconds) {
  const auto each = [&](std::int64_t many) { return static_cast<double>(many) / seconds; };
  bench::report r;
  r.name = "postgres_idle";
  r.what = "what an idle relay asks of the server, BEGIN, SET and COMMIT counted as statements";
  r.unit = "stmts/s";
  r.lower_is_better = true;
  r.ours = each(to.statements - from.statements);
  r.target = "< 5";
  r.reached = r.ours < target_per_second;
  r.counters = {{"transactions_per_second", each(to.transactions - from.transactions)}, {"seconds", seconds}};
  return r;
}

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const auto time = opts.quick ? idle_time{500ms, 1s} : idle_time{4s, 10s};
  const bench::scratch own(server, "idle");
  bench::raw_connection elsewhere(server);
  const bench::statement_counter line(elsewhere.get());
  const auto db = settle::postgres::open(own.conninfo() + line.detour());
  bench::nowhere destination;
  settle::relay relay(*db, destination);
  const settle::background relaying(relay);
  relay_one(*db, destination);
  std::this_thread::sleep_for(time.before);
  const auto from = count(line, elsewhere);
  if (from.statements == 0) throw std::runtime_error("no statement was seen on the line");
  std::this_thread::sleep_for(time.counted);
  return {report_of(from, count(line, elsewhere), std::chrono::duration<double>(time.counted).count())};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
