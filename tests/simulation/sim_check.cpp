#include "simulation/sim_check.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "settle/dead_letter.hpp"
#include "settle/error.hpp"
#include "settle/sqlite.hpp"
#include "settle/verify.hpp"
#include "sqlite/handle.hpp"
#include "sqlite/inspection.hpp"

namespace settle::sim {
namespace {

sqlite::handle open_raw(const std::string& path, const std::string& vfs) {
  return sqlite::open_handle({path, vfs}, 0);
}

std::string integrity_of(const std::string& path, const std::string& vfs) {
  const auto db = open_raw(path, vfs);
  std::string said;
  const auto read = [](void* out, int, char** columns, char**) {
    static_cast<std::string*>(out)->append(columns[0]);
    return 0;
  };
  if (sqlite3_exec(db.get(), "pragma integrity_check", read, &said, nullptr) != SQLITE_OK)
    said.append(sqlite3_errmsg(db.get()));
  return said;
}

class checker {
 public:
  checker(const files_to_check& files, const memory_of_customers& customers)
      : files_(files), customers_(customers) {}

  check_result run() {
    for (const auto& path : files_.services) check_integrity(path);
    check_integrity(files_.broker);
    if (!result_.problems.empty()) return std::move(result_);
    std::vector<std::unique_ptr<database>> services;
    for (const auto& path : files_.services) services.push_back(open(path));
    const auto broker = open(files_.broker);
    check_orders(*services[0]);
    for (std::size_t i = 1; i < services.size(); ++i) check_failures(*services[i]);
    sqlite::embedded_inspection at_broker(*broker);
    verify_input input{.services = {}, .broker = &at_broker, .examples_max = 3};
    for (const auto& one : services) input.services.push_back(one.get());
    judge(verify(input));
    return std::move(result_);
  }

 private:
  std::unique_ptr<database> open(const std::string& path) const {
    return sqlite::open(path, {.env = files_.env, .vfs = files_.vfs});
  }

  void check_integrity(const std::string& path) {
    const auto said = integrity_of(path, files_.vfs);
    if (said != "ok") result_.problems.push_back(fmt::format("{} is damaged: {}", path, said));
  }

  // What a producer was told is there, and the order, its event and its note were one.
  void check_orders(database& db) {
    auto tx = db.read();
    const auto rows = tx.execute("select id from orders");
    std::set<std::string> there;
    for (std::size_t i = 0; i < rows.size(); ++i) there.insert(rows[i][0].text());
    for (const auto& id : customers_.confirmed)
      if (!there.contains(id)) result_.problems.push_back("a confirmed order vanished: " + id);
    for (const auto& id : customers_.conflicts)
      if (!there.contains(id))
        result_.problems.push_back("an order vanished that a conflict had confirmed: " + id);
    const auto torn = tx.execute(
        "select count(*) from (select id from orders except select subject from settle_effects "
        "union all select subject from settle_effects except select id from orders)");
    if (torn[0][0].integer() != 0) result_.problems.emplace_back("orders and their notes differ");
  }

  // Nobody waits any more, and what was given up was given up for a reason of its own.
  void check_failures(database& db) {
    const auto waiting = db.read().execute("select count(*) from settle_parked_keys")[0][0].integer();
    if (waiting != 0) result_.problems.push_back(fmt::format("{} keys are still held", waiting));
    for (const auto& one : dead_letters(db, {}, 10'000)) {
      ++result_.dead_letters;
      if (one.status != dead_letter_status::replayed &&
          one.reason != dead_letter_reason::beyond_dedup_horizon)
        result_.problems.push_back(
            fmt::format("not replayed: {} at {}: {}", one.what.id, one.consumer, to_string(one.status)));
      if (one.reason != dead_letter_reason::too_old && one.error.starts_with(closed))
        result_.problems.push_back(
            fmt::format("given up for an outage: {} at {}", one.what.id, one.consumer));
    }
  }

  void judge(const verify_report& report) {
    result_.committed = report.committed;
    for (const auto& one : report.findings)
      result_.problems.push_back(
          fmt::format("{}: {} at {}: {}", one.kind, one.subject, one.consumer, one.detail));
    if (!report.clean() || report.pending != 0 || report.applied != report.expected)
      result_.problems.push_back(
          fmt::format("committed {} expected {} applied {} given up {} pending {} lost {} doubled {} ghosts "
                      "{} reordered {}",
                      report.committed, report.expected, report.applied, report.given_up, report.pending,
                      report.lost, report.doubled, report.ghosts, report.reordered));
  }

  const files_to_check& files_;
  const memory_of_customers& customers_;
  check_result result_;
};

}  // namespace

check_result check_world(const files_to_check& files, const memory_of_customers& customers) {
  return checker(files, customers).run();
}

void make_rowids_reusable(const std::string& path, const std::string& vfs) {
  const auto db = open_raw(path, vfs);
  sqlite::run(db.get(), "pragma writable_schema = on");
  sqlite::run(
      db.get(),
      "update sqlite_master set sql = replace(sql, ' autoincrement', '') where name = 'settle_outbox'");
}

}  // namespace settle::sim
