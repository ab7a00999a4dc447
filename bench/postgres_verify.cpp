// The checker and the view of the outbox on PostgreSQL, with a million events, many ticks and many notes of
// progress.
#include "raw_postgres.hpp"
#include "settle/postgres.hpp"
#include "verifying.hpp"

namespace {

// Twenty transactions between two ticks, and a note for each tick.
void fill(bench::raw_connection& raw, const bench::verified_system& size) {
  raw.run("delete from settle.outbox_ticks");
  raw.run(
      fmt::format("insert into settle.outbox (slot, xid, seq, event_id, topic, event_type, aggregate_id, "
                  "payload, created_at) "
                  "select i * 8 / ({0} + 1), (1000 + i)::text::xid8, i, "
                  "('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'orders', 'order.placed', "
                  "(i % 1000)::text, '', i "
                  "from generate_series(1, {0}) i",
                  size.events));
  raw.run(fmt::format(
      "insert into settle.outbox_ticks (n, snap, seq_high, xid_high, at) select n, (x || ':' || x || "
      "':')::pg_snapshot, "
      "n * {1}, x::text::xid8, n from (select n, 1001 + n * {1} as x from generate_series(0, {0}) n) t",
      size.ticks, size.events / size.ticks));
  raw.run(
      fmt::format("insert into settle.outbox_progress (shares, tick, upto, position, at) "
                  "select 65535, n, 0, 0, n from generate_series(1, {}) n",
                  size.ticks));
  raw.run(fmt::format("select setval('settle.outbox_seq', {})", size.events));
}

void note_effects(bench::raw_connection& raw) {
  for (const auto* kind : {"committed", "applied"})
    raw.run(fmt::format(
        "insert into settle.effects (kind, consumer, topic, key, subject, event_id, at) "
        "select '{}', 'warehouse', topic, aggregate_id, seq::text, event_id::text, 0 from settle.outbox "
        "order by seq",
        kind));
}

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const auto size = bench::verified_size(opts);
  const bench::scratch own(server, "verify");
  bench::raw_connection raw(own.conninfo());
  fill(raw, size);
  const auto broker = bench::fill_verified_broker(opts.folder / "broker.db", size.events);
  const auto service = settle::postgres::open(own.conninfo());
  std::vector<bench::report> reports;
  reports.push_back(
      bench::newest_report_of("postgres_outbox_newest", *service, "settle.outbox_events", size));
  reports.push_back(bench::verify_report_of("postgres_verify_records", "settle verify by its records",
                                            *service, *broker, size));
  note_effects(raw);
  reports.push_back(bench::verify_report_of("postgres_verify", "settle verify with an effect log", *service,
                                            *broker, size));
  return reports;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
