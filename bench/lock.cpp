// Locks on SQLite, one client: acquire and release. Against two bare statements on the same table that do the
// same.
#include "settle/lock.hpp"

#include <chrono>
#include <string>

#include "harness.hpp"
#include "raw_sqlite.hpp"
#include "settle/database.hpp"
#include "settle/ids.hpp"
#include "settle/sqlite.hpp"

namespace {

constexpr double target = 0.7;

class raw_locks {
 public:
  explicit raw_locks(const std::string& path) : db_(path) {}

  void acquire_and_release() {
    const auto owner = settle::system_ids().next().text();
    const std::int64_t now = settle::system_time().now().time_since_epoch().count();
    upsert_.bind(1, "report").bind(2, owner).bind(3, now + 30'000'000).bind(4, now).run();
    update_.bind(1, "report").bind(2, owner).run();
  }

 private:
  bench::raw_database db_;
  bench::raw_statement upsert_ = db_.prepare(
      "insert into settle_locks as l (name, owner, epoch, held_until) values ($1, $2, 1, $3)"
      " on conflict (name) do update set owner = excluded.owner, epoch = l.epoch + 1, held_until = "
      "excluded.held_until"
      " where l.held_until <= $4");
  bench::raw_statement update_ =
      db_.prepare("update settle_locks set held_until = 0 where name = $1 and owner = $2");
};

void run(const bench::options& opts) {
  const std::string folder = opts.folder;
  const int rounds = opts.quick ? 1 : 61;
  const std::int64_t each = opts.quick ? 10 : 15;
  const auto db = settle::sqlite::open(folder + "/ours.db");
  settle::migrate(*db);
  settle::locks locks(*db);
  settle::migrate(*settle::sqlite::open(folder + "/raw.db"));
  raw_locks raw(folder + "/raw.db");
  const auto repeat = [&](auto&& one) {
    return bench::measure(each, [&] {
      for (std::int64_t n = 0; n < each; ++n) one();
    });
  };
  auto report =
      bench::compare(bench::take_turns(
                         rounds, [&] { return repeat([&] { locks.try_acquire("report")->release(); }); },
                         [&] { return repeat([&] { raw.acquire_and_release(); }); }),
                     target);
  report.name = "lock";
  report.unit = "locks/s";
  report.what = "a lock acquired and released, one client; raw: an upsert and an update on the same table";
  bench::write(opts, {report});
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
