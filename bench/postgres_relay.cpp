// The relay on PostgreSQL: into a destination that costs nothing, against a plain loop that reads the same
// rows; what it costs the server, by the server's own counters; and into the embedded broker, against the
// slower of both sides alone.
#include "harness.hpp"
#include "raw_broker.hpp"
#include "raw_postgres.hpp"
#include "service.hpp"
#include "settle/postgres.hpp"

namespace {

constexpr std::int64_t batch = 1000;
constexpr double read_target = 0.65;
constexpr double rate_target = 200'000;
constexpr double broker_target = 0.5;
constexpr double transactions_target = 3;  // per 1,000 events
constexpr double wal_target = 2;           // bytes per event

std::int64_t last_number(bench::raw_connection& raw) {
  return raw.number("select last_value from settle.outbox_seq");
}

bench::report at_most(const char* name, const char* unit, double ours, double target) {
  bench::report r;
  r.name = name;
  r.unit = unit;
  r.lower_is_better = true;
  r.ours = ours;
  r.target = "<= " + std::to_string(static_cast<int>(target));
  r.reached = ours <= target;
  return r;
}

std::vector<bench::report> to_nowhere(const bench::options& opts, const std::string& conninfo) {
  const std::int64_t events = opts.quick ? 2'000 : 200'000;
  const auto db = settle::postgres::open(conninfo);
  bench::nowhere destination;
  settle::relay relay(*db, destination, {.batch_max = batch});
  bench::drain(relay);
  bench::raw_connection raw(conninfo);
  std::int64_t read_from = 0;
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 5,
      [&] {
        read_from = last_number(raw);
        bench::fill_outbox(raw, events);
        return bench::measure(events, [&] { bench::drain(relay); });
      },
      [&] { return bench::measure(events, [&] { raw.read_outbox(read_from); }); });
  relay.leave();
  auto r = bench::compare(turns, read_target);
  r.name = "postgres_relay";
  r.what =
      "outbox on PostgreSQL to nowhere, batches of 1,000; raw: one connection reads the same rows in binary";
  r.unit = "events/s";
  bench::keep_processor_time_only(r);
  bench::report rate;
  rate.name = "postgres_relay_rate";
  rate.what = "the same without comparison, for machines of the class that the target was set on";
  rate.unit = "events/s";
  rate.ours = r.ours;
  rate.target = ">= 200000";
  rate.reached = r.ours >= rate_target;
  return {r, rate};
}

// Of a relay from its first connection to its last, with nobody else in the database.
std::vector<bench::report> costs_of_a_drain(const bench::options& opts, const std::string& conninfo) {
  const std::int64_t events = opts.quick ? 2'000 : 500'000;
  bench::raw_connection raw(conninfo);
  bench::fill_outbox(raw, events);
  const auto before = bench::count_without_others(raw);
  bench::nowhere destination;
  {
    const auto db = settle::postgres::open(conninfo);
    settle::relay relay(*db, destination, {.batch_max = batch});
    bench::drain(relay);
    relay.leave();
  }
  const auto after = bench::count_without_others(raw);
  const auto each = [&](std::int64_t counted) {
    return static_cast<double>(counted) / static_cast<double>(destination.taken.load());
  };
  auto transactions = at_most("postgres_relay_commits", "per 1,000",
                              1000 * each(after.transactions - before.transactions), transactions_target);
  transactions.what = "transactions per 1,000 events in a backlog drain, as the server counts them";
  transactions.counters = {{"events", static_cast<double>(destination.taken.load())},
                           {"transactions_per_event", each(after.transactions - before.transactions)},
                           {"syncs_per_event", each(after.syncs - before.syncs)},
                           {"wal_bytes_per_event", each(after.wal_bytes - before.wal_bytes)}};
  auto wal = at_most("postgres_relay_wal", "B/event", each(after.wal_bytes - before.wal_bytes), wal_target);
  wal.what = "bytes of the server's log per event in a backlog drain";
  return {transactions, wal};
}

bench::report to_broker(const bench::options& opts, const std::string& conninfo) {
  const std::int64_t events = opts.quick ? 1'000 : 8'000;
  const auto db = settle::postgres::open(conninfo);
  const auto broker = settle::sqlite::open_broker(opts.folder / "broker.db");
  settle::relay relay(*db, broker->publishing());
  bench::drain(relay);
  bench::raw_connection raw(conninfo);
  bench::raw_broker inserts(opts.folder / "raw.db", bench::filled_payload());
  std::int64_t read_from = 0;
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 21,
      [&] {
        read_from = last_number(raw);
        bench::fill_outbox(raw, events);
        return bench::measure(events, [&] { bench::drain(relay); });
      },
      [&] {
        const auto read = bench::measure(events, [&] { raw.read_outbox(read_from); });
        const auto inserted = bench::measure(events, [&] { inserts.insert(events); });
        return read.seconds > inserted.seconds ? read : inserted;
      });
  relay.leave();
  auto r = bench::compare(turns, broker_target);
  r.name = "postgres_relay_broker";
  r.what =
      "outbox on PostgreSQL to embedded broker, batches of 500; raw: the slower of reading the rows from "
      "PostgreSQL and inserting them into the broker's table";
  r.unit = "events/s";
  return r;
}

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const bench::scratch own(server, "relay");
  auto reports = to_nowhere(opts, own.conninfo());
  for (auto& one : costs_of_a_drain(opts, own.conninfo())) reports.push_back(std::move(one));
  reports.push_back(to_broker(opts, own.conninfo()));
  return reports;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
