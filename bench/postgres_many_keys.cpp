// PostgreSQL: idempotency keys in a store that has ten million of them, against one that has none. Takes
// minutes, most of them to fill the store, so it runs by name only: BENCH=postgres_many_keys.
#include <atomic>
#include <optional>
#include <string>

#include "clients.hpp"
#include "raw_postgres.hpp"
#include "settle/claims.hpp"
#include "settle/once.hpp"
#include "settle/postgres.hpp"

namespace {

constexpr int many = 16;
constexpr double target = 0.6;

void fill(const std::string& conninfo, std::int64_t rows) {
  bench::raw_connection raw(conninfo);
  const auto count = std::to_string(rows);
  raw.run(
      "insert into settle.idempotency_keys select sha256(('a' || n)::bytea), 'shop', "
      "gen_random_uuid()::text, "
      "sha256('f'), 0, 9000000000000000 + n / 1000, 201, '[]', '{\"status\":\"placed\"}', sha256('h') from "
      "generate_series(1, " +
      count + ") n");
  raw.run(
      "insert into settle.idempotency_claims select sha256(('b' || n)::bytea), 'shop', "
      "gen_random_uuid()::text, n, "
      "sha256('f'), 0, 0, 9000000000000000 + n / 1000, 201, '[]', '{\"status\":\"placed\"}', sha256('h') "
      "from "
      "generate_series(1, " +
      count + ") n");
  raw.run("vacuum (analyze) settle.idempotency_keys");
  raw.run("vacuum (analyze) settle.idempotency_claims");
  raw.run("checkpoint");
}

class shop {
 public:
  explicit shop(const std::string& conninfo)
      : db_(settle::postgres::open(conninfo, {.connections_max = many})), keys_(settle::open_claims(*db_)) {}

  bench::slice once(const bench::slice_plan& plan) {
    return bench::in_parallel(plan, [&](int) {
      const auto key = name_ + std::to_string(++number_);
      settle::once(*db_, {"shop", "ann", key}, [&](settle::transaction&) {
        return settle::answer{.status = 201, .body = R"({"status":"placed"})"};
      });
    });
  }

  bench::slice claim(const bench::slice_plan& plan) {
    return bench::in_parallel(plan, [&](int) {
      const auto key = name_ + std::to_string(++number_);
      const settle::request_identity who{"shop", "ann", key};
      const auto got = keys_->claim({.who = who});
      keys_->complete(who, got.token, {.status = 201, .body = R"({"status":"placed"})"});
    });
  }

 private:
  std::unique_ptr<settle::database> db_;
  std::unique_ptr<settle::claims> keys_;
  std::string name_ = settle::system_ids().next().text();  // no two of them have a key in common
  std::atomic<std::int64_t> number_ = 0;
};

using work = bench::slice (shop::*)(const bench::slice_plan&);

// Where a difference comes from, as the server counts it: pages of the indexes that are looked at, those that
// are not in memory, and those that go to the log whole, because a large index is rarely touched twice at one
// place between two checkpoints.
void add_profile(bench::report& to, const std::string& which, const bench::scratch& store, work what,
                 bench::slice_plan plan) {
  bench::raw_connection raw(store.conninfo());
  plan.rounds = 1;
  const auto before = bench::count_without_others(raw);
  const auto keys = static_cast<double>((shop(store.conninfo()).*what)(plan).units);
  const auto after = bench::count_without_others(raw);
  const auto add = [&](const char* name, std::int64_t bench::server_counts::* counted) {
    to.counters.push_back({which + name, static_cast<double>(after.*counted - before.*counted) / keys});
  };
  add("_wal_bytes_per_key", &bench::server_counts::wal_bytes);
  add("_page_images_per_key", &bench::server_counts::page_images);
  add("_pages_found_per_key", &bench::server_counts::pages_found);
  add("_pages_read_per_key", &bench::server_counts::pages_read);
}

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const bench::scratch full_store(server, "many_keys");
  const bench::scratch empty_store(server, "no_keys");
  const std::int64_t rows = opts.quick ? 1000 : 10'000'000;
  fill(full_store.conninfo(), rows);
  std::optional<shop> full(full_store.conninfo()), empty(empty_store.conninfo());
  const bench::slice_plan plan =
      opts.quick ? bench::slice_plan{1, many, 10} : bench::slice_plan{21, many, 200};
  const auto compare = [&](const char* name, const char* what, work of) {
    auto made = bench::compare(
        bench::take_turns(
            plan.rounds, [&] { return ((*full).*of)(plan); }, [&] { return ((*empty).*of)(plan); }),
        target);
    made.name = name;
    made.what = what;
    made.unit = "keys/s";
    bench::keep_processor_time_only(made);
    return made;
  };
  auto once = compare("postgres_many_keys_once",
                      "once, ten million keys stored; in place of raw: none stored", &shop::once);
  auto claims = compare("postgres_many_keys_claims",
                        "claim and complete, ten million keys stored; in place of raw: none", &shop::claim);
  full.reset();
  empty.reset();
  for (auto* one : {&once, &claims}) {
    const work of = one == &once ? &shop::once : &shop::claim;
    add_profile(*one, "many", full_store, of, plan);
    add_profile(*one, "none", empty_store, of, plan);
  }
  return {once, claims};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
