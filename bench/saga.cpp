// Sagas on SQLite: three local steps, 64 sagas at a time, against a loop that writes the same rows of the
// domain and the same journal with plain SQLite, in transactions of the same size. Then: sagas whose third
// step is refused, so that two are undone; one saga alone; and one of a thousand steps.
#include "raw_sqlite.hpp"
#include "sagas.hpp"
#include "settle/sqlite.hpp"

namespace {

constexpr double target = 0.5;
constexpr double rate_target = 6'000;
constexpr double commits_target = 0.5;

std::unique_ptr<settle::database> open(const std::string& path) {
  auto db = settle::sqlite::open(path);
  settle::migrate(*db);
  auto tx = db->begin();
  for (const char* table : bench::domain_tables)
    tx.execute("create table " + std::string(table) + " (id integer primary key, order_id text not null)");
  tx.commit();
  return db;
}

class raw_sagas {
 public:
  explicit raw_sagas(const std::string& path) : db_(path) {
    const auto kind = std::to_string(bench::raw_kind);
    for (int shard = 0; shard < 16; ++shard)
      db_.run(("insert into settle_saga_fences (kind, shard, epoch) values (" + kind + ", " +
               std::to_string(shard) + ", 1)")
                  .c_str());
  }

  void run(std::int64_t sagas, bench::refusal third) {
    for (std::int64_t done = 0; done < sagas; done += bench::in_flight) run_batch(bench::in_flight, third);
  }

  // That it has written what ours writes.
  void check() {
    db_.run("create temp table wrong (n integer check (n = 0))");
    db_.run(
        "insert into wrong select count(*) from settle_sagas where ended_at is null or due_at is not null");
    db_.run("insert into wrong select count(*) = 0 from settle_sagas");
    db_.run(
        "insert into wrong select count(*) from settle_sagas s where not exists "
        "(select 1 from settle_saga_journal j where j.no = s.no and j.n = 3 and j.name = 'ship')");
  }

  void run_batch(std::int64_t sagas, bench::refusal third) {
    const auto first = next_;
    db_.begin();
    for (std::int64_t n = 0; n < sagas; ++n) start();
    db_.commit();
    db_.begin();
    fence_.bind(1, bench::raw_kind).run();
    for (auto no = first; no < next_; ++no) act(no, third);
    for (auto no = first; no < next_; ++no) note(no, third);
    for (auto no = first; no < next_; ++no) end(no, third);
    db_.commit();
  }

 private:
  void start() {
    const auto id = bench::id_of(next_);
    const auto input = bench::input_of(next_);
    start_.bind(1, next_).bind(2, id).bind(3, next_ % 16).bind(4, bench::order_of(input));
    start_.bind_bytes(5, input).bind(6, now()).bind(7, bench::raw_kind).run();
    ++next_;
  }

  void act(std::int64_t no, bench::refusal third) {
    const auto order = bench::order_of(bench::input_of(no));
    reserve_.bind(1, order).run();
    charge_.bind(1, order).run();
    if (third == bench::refusal::none) {
      ship_.bind(1, order).run();
      return;
    }
    refund_.bind(1, order).run();
    release_.bind(1, order).run();
  }

  void note(std::int64_t no, bench::refusal third) {
    const auto input = bench::input_of(no);
    const auto order = bench::order_of(input);
    for (const auto& row : bench::journal_of(third)) {
      row_.bind(1, no).bind(2, row.n).bind(3, row.kind).bind(4, row.name);
      row_.bind_bytes(5, row.with_input ? std::string_view(input) : std::string_view());
      row_.bind(6, row.with_hash ? bench::hash_of(no) : 0)
          .bind_bytes(7, row.result == nullptr ? order : row.result);
      row_.bind(8, row.of).bind(9, now()).run();
    }
  }

  void end(std::int64_t no, bench::refusal third) {
    const bool completed = third == bench::refusal::none;
    end_.bind(1, no).bind(2, completed ? "COMPLETED" : "COMPENSATED");
    end_.bind(3, completed ? "" : bench::refused).bind(4, now()).run();
  }

  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }

  bench::raw_database db_;
  bench::raw_statement start_ = db_.prepare(
      "insert into settle_sagas (no, id, kind, shard, entity_id, input, due_at, created_at, updated_at) "
      "values (?1, ?2, ?7, ?3, ?4, ?5, ?6, ?6, ?6) on conflict (id) do nothing");
  bench::raw_statement fence_ =
      db_.prepare("select shard, epoch from settle_saga_fences where kind = ?1 order by shard");
  bench::raw_statement reserve_ = db_.prepare(bench::reserve_sql);
  bench::raw_statement charge_ = db_.prepare(bench::charge_sql);
  bench::raw_statement ship_ = db_.prepare(bench::ship_sql);
  bench::raw_statement release_ = db_.prepare(bench::release_sql);
  bench::raw_statement refund_ = db_.prepare(bench::refund_sql);
  bench::raw_statement row_ = db_.prepare(
      "insert into settle_saga_journal (no, n, kind, scope, name, input, input_hash, result, of, at, epoch) "
      "values (?1, cast(?2 as integer), cast(?3 as integer), '', ?4, nullif(?5, x''), nullif(?6, 0), ?7, "
      "cast(nullif(?8, '') as integer), ?9, 1)");
  bench::raw_statement end_ = db_.prepare(
      "update settle_sagas set status = ?2, due_at = null, last_error = nullif(?3, ''), ended_at = ?4, "
      "updated_at = ?4 where no = ?1");
  std::int64_t next_ = 1;
};

bench::report against_raw(const bench::options& opts, const std::string& name, bench::refusal third) {
  const std::int64_t sagas = bench::in_flight * (opts.quick ? 2 : 12);
  const auto db = open(opts.folder / (name + ".db"));
  open(opts.folder / (name + "-raw.db")).reset();
  bench::ordering ours(*db, name, third);
  raw_sagas raw(opts.folder / (name + "-raw.db"));
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 21, [&] { return ours.measure(sagas); },
      [&] { return bench::measure(sagas, [&] { raw.run(sagas, third); }); });
  raw.check();
  auto r = bench::compare(turns, target);
  r.name = name;
  r.unit = "sagas/s";
  return r;
}

bench::report commits(const bench::report& of) {
  bench::report r;
  r.name = of.name + "_commits";
  r.what = "transactions per saga of the same";
  r.unit = "per saga";
  r.lower_is_better = true;
  for (const auto& one : of.counters)
    if (one.name == "ours_commits_per_unit") r.ours = one.value;
  r.target = "<= 0.5";
  r.reached = r.ours <= commits_target;
  return r;
}

bench::report alone(const bench::options& opts) {
  const auto db = open(opts.folder / "alone.db");
  open(opts.folder / "alone-raw.db").reset();
  bench::ordering ours(*db, "alone", bench::refusal::none);
  raw_sagas raw(opts.folder / "alone-raw.db");
  const settle::background loop(ours.host());
  std::vector<double> took, bare;
  for (int i = 0; i < (opts.quick ? 10 : 200); ++i) {
    took.push_back(bench::one_alone(ours));
    bare.push_back(bench::measure(1, [&] { raw.run_batch(1, bench::refusal::none); }).seconds * 1e3);
  }
  return bench::alone_report("saga_alone", took, bare);
}

void run(const bench::options& opts) {
  auto plain = against_raw(opts, "saga", bench::refusal::none);
  plain.what = "three local steps, 64 sagas at a time; raw: the same rows and the same journal";
  auto undone = against_raw(opts, "saga_undone", bench::refusal::early);
  undone.what = "the third step refused and two undone; raw: the same rows and the same journal";
  bench::must_reach_half_of(undone, plain);
  const auto rate = bench::rate_report(plain, rate_target);
  const auto db = open(opts.folder / "long.db");
  bench::write(opts,
               {plain, rate, commits(plain), undone, alone(opts), bench::long_saga(opts, *db, "saga_long")});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
