// Locks on PostgreSQL: acquire and release, one client, and sixteen with a lock each. Against two bare
// prepared statements on the same table that do the same.
#include <future>

#include "raw_postgres.hpp"
#include "settle/lock.hpp"
#include "settle/postgres.hpp"

namespace {

constexpr double target = 0.7;
constexpr int many = 16;

struct slice_plan {
  int rounds;
  int clients;
  std::int64_t each;  // locks of each client per slice
};

bench::slice in_parallel(const slice_plan& plan, const std::function<void(int client)>& one) {
  return bench::measure(plan.clients * plan.each, [&] {
    std::vector<std::future<void>> clients;
    for (int client = 0; client < plan.clients; ++client)
      clients.push_back(std::async(std::launch::async, [&, client] {
        for (std::int64_t n = 0; n < plan.each; ++n) one(client);
      }));
    for (auto& each : clients) each.get();
  });
}

std::unique_ptr<bench::raw_connection> raw_client(const std::string& conninfo) {
  auto made = std::make_unique<bench::raw_connection>(conninfo);
  made->prepare("acquire",
                "insert into settle.locks as l (name, owner, epoch, held_until) values ($1, $2, 1, $3)"
                " on conflict (name) do update set owner = excluded.owner, epoch = l.epoch + 1,"
                " held_until = excluded.held_until where l.held_until <= $4 returning epoch, held_until");
  made->prepare("release", "update settle.locks set held_until = 0 where name = $1 and owner = $2");
  return made;
}

void acquire_and_release(bench::raw_connection& on, const std::string& name) {
  const auto owner = settle::system_ids().next().text();
  const auto now = settle::system_time().now().time_since_epoch().count();
  on.run_prepared("acquire", {name, owner, std::to_string(now + 30'000'000), std::to_string(now)});
  on.run_prepared("release", {name, owner});
}

bench::report compare(const slice_plan& plan, settle::locks& locks, const std::string& conninfo) {
  std::vector<std::unique_ptr<bench::raw_connection>> raw;
  for (int n = 0; n < plan.clients; ++n) raw.push_back(raw_client(conninfo));
  const auto name = [](const char* whose, int client) { return whose + std::to_string(client); };
  auto report = bench::compare(bench::take_turns(
                                   plan.rounds,
                                   [&] {
                                     return in_parallel(plan, [&](int client) {
                                       locks.try_acquire(name("ours-", client))->release();
                                     });
                                   },
                                   [&] {
                                     return in_parallel(plan, [&](int client) {
                                       acquire_and_release(*raw[client], name("raw-", client));
                                     });
                                   }),
                               target);
  report.name = "postgres_lock_" + std::to_string(plan.clients);
  report.unit = "locks/s";
  report.what = "a lock acquired and released, clients: " + std::to_string(plan.clients) +
                "; raw: a prepared upsert and update on the same table";
  report.counters = {};  // the server writes, not this process
  return report;
}

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const bench::scratch own(server, "lock");
  const auto db = settle::postgres::open(own.conninfo(), {.connections_max = many});
  settle::locks locks(*db);
  const slice_plan one = opts.quick ? slice_plan{1, 1, 20} : slice_plan{21, 1, 100};
  const slice_plan sixteen = opts.quick ? slice_plan{1, many, 10} : slice_plan{21, many, 50};
  return {compare(one, locks, own.conninfo()), compare(sixteen, locks, own.conninfo())};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }
