// Sagas on PostgreSQL: three local steps, 64 sagas at a time, against a loop that sends the same statements
// of the domain and writes the same journal on one connection, pipelined, in transactions of the same size.
// Then: what they cost the server, by its own counters; sagas whose third step is refused, so that two are
// undone; one saga alone; and one of a thousand steps.
//
// Steps post their statements, so they cost no round trip of their own.
#include <array>

#include "raw_postgres.hpp"
#include "sagas.hpp"
#include "settle/postgres.hpp"
#include "statement_counter.hpp"

namespace {

constexpr double target = 0.5;
constexpr double rate_target = 2'000;
constexpr double transactions_target = 0.5;  // per saga

class no_log final : public settle::log_sink {
 public:
  bool enabled(settle::log_level) const override { return false; }
  void write(settle::log_level, std::string_view, std::initializer_list<settle::log_field>) override {}
};

std::unique_ptr<settle::database> open(const std::string& conninfo) {
  static no_log log;
  settle::environment env;
  env.log = &log;
  return settle::postgres::open(conninfo, {.env = env});
}

class raw_sagas {
 public:
  explicit raw_sagas(const std::string& conninfo) : conn_(conninfo) {
    conn_.run("insert into settle.saga_fences select " + kind_ +
              ", i, 1 from generate_series(0, 15) i "
              "on conflict do nothing");
    conn_.prepare(
        "start",
        "insert into settle.sagas (id, kind, shard, entity_id, input, due_at, created_at, updated_at) "
        "values ($1, $6, $2, $3, $4, $5, $5, $5) on conflict (id) do nothing");
    conn_.prepare("fence",
                  "select shard, epoch from settle.saga_fences where kind = $1 order by shard for update");
    conn_.prepare("reserve", bench::reserve_sql);
    conn_.prepare("charge", bench::charge_sql);
    conn_.prepare("ship", bench::ship_sql);
    conn_.prepare("release", bench::release_sql);
    conn_.prepare("refund", bench::refund_sql);
    conn_.prepare(
        "row",
        "insert into settle.saga_journal (no, n, kind, scope, name, input, input_hash, result, of, at, "
        "epoch) values ($1, $2, $3, '', $4, nullif($5, '')::bytea, nullif($6, '')::bigint, "
        "nullif($7, '')::bytea, nullif($8, '')::integer, $9, 1)");
    conn_.prepare(
        "end",
        "update settle.sagas set status = $2, due_at = null, last_error = nullif($3, ''), ended_at = $4, "
        "updated_at = $4 where no = $1");
  }

  void run(std::int64_t sagas, bench::refusal third) {
    for (std::int64_t done = 0; done < sagas; done += bench::in_flight) run_batch(bench::in_flight, third);
  }

  // That it has written what ours writes.
  void check() {
    const auto of_raw = " from settle.sagas s where kind = " + kind_;
    const bool ended = conn_.run("select bool_and(ended_at is not null and due_at is null)" + of_raw) == "t";
    const bool noted = conn_.run(
                           "select bool_and(exists (select from settle.saga_journal j where j.no = s.no and "
                           "j.n = 3 and j.name = 'ship'))" +
                           of_raw) == "t";
    if (!ended || !noted) throw std::runtime_error("the loop by hand has not written what it should");
  }

  // The numbers of what was started are asked for, as a loop has to that is not the one who starts.
  void run_batch(std::int64_t sagas, bench::refusal third) {
    std::vector<bench::raw_connection::call> calls;
    const auto first = next_;
    for (std::int64_t n = 0; n < sagas; ++n, ++next_) start(calls);
    conn_.run_pipelined(calls);
    const auto no = conn_.number("select min(no) from (select no from settle.sagas where kind = " + kind_ +
                                 " and due_at <= " + now() + " order by due_at limit 64) due");
    calls.assign(1, {"fence", {kind_}});
    for (std::int64_t n = 0; n < sagas; ++n) act(calls, first + n, third);
    for (std::int64_t n = 0; n < sagas; ++n) note(calls, no + n, first + n, third);
    for (std::int64_t n = 0; n < sagas; ++n) end(calls, no + n, third);
    conn_.run_pipelined(calls);
  }

 private:
  using calls_t = std::vector<bench::raw_connection::call>;

  void start(calls_t& to) const {
    const auto input = bench::input_of(next_);
    to.push_back(
        {"start",
         {bench::id_of(next_), std::to_string(next_ % 16), bench::order_of(input), input, now(), kind_}});
  }

  static void act(calls_t& to, std::int64_t number, bench::refusal third) {
    const auto order = bench::order_of(bench::input_of(number));
    to.push_back({"reserve", {order}});
    to.push_back({"charge", {order}});
    if (third == bench::refusal::none) {
      to.push_back({"ship", {order}});
      return;
    }
    to.push_back({"refund", {order}});
    to.push_back({"release", {order}});
  }

  static void note(calls_t& to, std::int64_t no, std::int64_t number, bench::refusal third) {
    const auto input = bench::input_of(number);
    for (const auto& row : bench::journal_of(third))
      to.push_back({"row",
                    {std::to_string(no), row.n, row.kind, row.name, row.with_input ? input : "",
                     row.with_hash ? std::to_string(bench::hash_of(number)) : "",
                     row.result == nullptr ? bench::order_of(input) : row.result, row.of, now()}});
  }

  static void end(calls_t& to, std::int64_t no, bench::refusal third) {
    const bool completed = third == bench::refusal::none;
    to.push_back({"end",
                  {std::to_string(no), completed ? "COMPLETED" : "COMPENSATED",
                   completed ? "" : bench::refused, now()}});
  }

  static std::string now() {
    return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(
                              std::chrono::system_clock::now().time_since_epoch())
                              .count());
  }

  bench::raw_connection conn_;
  const std::string kind_ = std::to_string(bench::raw_kind);
  inline static std::int64_t next_ = 1;  // of all of them: they share a database
};

void create_tables(const std::string& conninfo) {
  bench::raw_connection raw(conninfo);
  for (const char* table : bench::domain_tables)
    raw.run("create table " + std::string(table) +
            " (id bigint generated always as identity primary key, order_id text not null)");
}

bench::report against_raw(const bench::options& opts, const std::string& conninfo, const std::string& name,
                          bench::refusal third) {
  const std::int64_t sagas = bench::in_flight * (opts.quick ? 2 : 12);
  const auto db = open(conninfo);
  bench::ordering ours(*db, name, third);
  raw_sagas raw(conninfo);
  const auto turns = bench::take_turns(
      opts.quick ? 1 : 21, [&] { return ours.measure(sagas); },
      [&] { return bench::measure(sagas, [&] { raw.run(sagas, third); }); });
  raw.check();
  auto r = bench::compare(turns, target);
  r.name = name;
  r.unit = "sagas/s";
  bench::keep_processor_time_only(r);
  return r;
}

// Of a host from its first connection to its last, with nobody else in the database; the statements are
// counted on the line.
bench::report costs(const bench::options& opts, const std::string& conninfo, const std::string& of,
                    bench::refusal third) {
  const std::int64_t sagas = bench::in_flight * (opts.quick ? 4 : 100);
  bench::raw_connection raw(conninfo);
  const bench::statement_counter counter(raw.get());
  const auto before = bench::count_without_others(raw);
  {
    const auto db = open(conninfo + counter.detour());
    bench::ordering ours(*db, "costs_of_" + of, third);
    ours.measure(sagas);
  }
  const auto after = bench::count_without_others(raw);
  const auto per_saga = [&](std::int64_t counted) {
    return static_cast<double>(counted) / static_cast<double>(sagas);
  };
  bench::report r;
  r.name = of + "_commits";
  r.what = "transactions per saga, as the server counts them, from the first connection to the last";
  r.unit = "per saga";
  r.lower_is_better = true;
  r.ours = per_saga(after.transactions - before.transactions);
  r.target = "<= 0.5";
  r.reached = r.ours <= transactions_target;
  r.counters = {{"sagas", static_cast<double>(sagas)},
                {"statements_per_saga", per_saga(counter.statements())},
                {"syncs_per_saga", per_saga(after.syncs - before.syncs)},
                {"wal_bytes_per_saga", per_saga(after.wal_bytes - before.wal_bytes)}};
  return r;
}

bench::report alone(const bench::options& opts, const std::string& conninfo) {
  const auto db = open(conninfo);
  bench::ordering ours(*db, "alone", bench::refusal::none);
  raw_sagas raw(conninfo);
  const settle::background loop(ours.host());
  std::vector<double> took, bare;
  for (int i = 0; i < (opts.quick ? 10 : 200); ++i) {
    took.push_back(bench::one_alone(ours));
    bare.push_back(bench::measure(1, [&] { raw.run_batch(1, bench::refusal::none); }).seconds * 1e3);
  }
  return bench::alone_report("postgres_saga_alone", took, bare);
}

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const bench::scratch own(server, "saga");
  create_tables(own.conninfo());
  auto plain = against_raw(opts, own.conninfo(), "postgres_saga", bench::refusal::none);
  plain.what = "three local steps, 64 sagas at a time; raw: the same rows and the same journal, pipelined";
  auto undone = against_raw(opts, own.conninfo(), "postgres_saga_undone", bench::refusal::early);
  undone.what = "the third step refused before it writes and two undone; raw: the same rows and journal";
  bench::must_reach_half_of(undone, plain);
  auto late = against_raw(opts, own.conninfo(), "postgres_saga_late", bench::refusal::late);
  late.what = "the third step refused after it has written and waited; raw: as if it had not";
  late.target = "";
  late.reached.reset();
  const auto db = open(own.conninfo());
  return {plain,
          bench::rate_report(plain, rate_target),
          costs(opts, own.conninfo(), plain.name, bench::refusal::none),
          undone,
          costs(opts, own.conninfo(), undone.name, bench::refusal::early),
          late,
          alone(opts, own.conninfo()),
          bench::long_saga(opts, *db, "postgres_saga_long")};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
