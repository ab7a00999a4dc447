// The checker and the view of the outbox on SQLite, with a million events and many notes of progress.
#include "verifying.hpp"

namespace {

void fill(settle::database& db, const bench::verified_system& size) {
  auto tx = db.begin();
  tx.execute(
      "with recursive n(i) as (select 1 union all select i + 1 from n where i < $1) "
      "insert into settle_outbox (lane, event_id, topic, event_type, aggregate_id, created_at, payload) "
      "select i % 256, printf('00000000-0000-7000-8000-%012x', i), 'orders', 'order.placed', i % 1000, i, "
      "x'' from n",
      {size.events});
  tx.execute(
      "with recursive n(i) as (select 1 union all select i + 1 from n where i < $1) "
      "insert into settle_outbox_progress (shares, position, at) select 65535, i * $2, i from n",
      {size.ticks, size.events / size.ticks});
  tx.execute(
      "with recursive n(i) as (select 0 union all select i + 1 from n where i < 15) "
      "insert into settle_shares (scope, share, position) select 'outbox', i, $1 from n",
      {size.events});
  tx.commit();
}

void note_effects(settle::database& db) {
  auto tx = db.begin();
  for (const auto* kind : {"committed", "applied"})
    tx.execute(
        "insert into settle_effects (kind, consumer, topic, key, subject, event_id, at) "
        "select $1, 'warehouse', topic, aggregate_id, seq, event_id, 0 from settle_outbox order by seq",
        {kind});
  tx.commit();
}

void run(const bench::options& opts) {
  const auto size = bench::verified_size(opts);
  const auto service = settle::sqlite::open(opts.folder / "service.db");
  settle::migrate(*service);
  fill(*service, size);
  const auto broker = bench::fill_verified_broker(opts.folder / "broker.db", size.events);
  std::vector<bench::report> reports;
  reports.push_back(bench::newest_report_of("outbox_newest", *service, "settle_outbox_events", size));
  reports.push_back(
      bench::verify_report_of("verify_records", "settle verify by its records", *service, *broker, size));
  note_effects(*service);
  reports.push_back(
      bench::verify_report_of("verify", "settle verify with an effect log", *service, *broker, size));
  bench::write(opts, reports);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
