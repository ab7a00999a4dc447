// settle doctor: what is wrong with a database, and the statement that fixes it.
#include "doctor/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/doctor_report.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/syntax.hpp"
#include "compose/service_database.hpp"

namespace settle::cli {
namespace {

struct doctor_arguments {
  std::string table;
  bool integrity = false;
  std::int64_t older_than = std::chrono::seconds(std::chrono::minutes(5)).count();

  doctor::limits normal() const {
    return {.transaction_age = std::chrono::seconds(older_than), .check_integrity = integrity};
  }
};

// A pooler in transaction mode takes no prepared statements of ours, and whoever relays through it should
// know.
diagnosis examine_server(const std::string& conninfo, const doctor_arguments& wanted) {
  const auto [db, pooled] = compose::open_to_examine(conninfo);
  diagnosis of{db->name(), {}};
  if (!wanted.table.empty()) {
    of.findings = doctor::examine_table(*db, wanted.table, wanted.normal());
    return of;
  }
  of.findings = doctor::examine(*db, wanted.normal());
  if (pooled) doctor::note_pooler(of.findings);
  return of;
}

// The file as it is: one that is not in WAL mode would be switched by opening it.
diagnosis examine_local(const std::string& path, const doctor_arguments& wanted) {
  if (!wanted.table.empty())
    throw failure(errc::invalid_argument,
                  "--table judges tables in PostgreSQL; name the server with --database 'host=… dbname=…'");
  compose::check_database(path);
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed))
    throw failure(
        errc::schema_missing,
        fmt::format("there is no service database at {}; name another place with --data or --database, or "
                    "create it with `settle migrate`",
                    path));
  diagnosis of{path, {}};
  if (doctor::examine_file(path, wanted.normal(), of.findings)) {
    const auto db = compose::open_database(path);
    is_kind(*db, file_kind::service);
    const auto inside = doctor::examine(*db, wanted.normal());
    of.findings.insert(of.findings.end(), inside.begin(), inside.end());
  }
  std::ranges::stable_sort(of.findings, std::greater{}, &doctor::finding::level);
  return of;
}

diagnosis examine(const std::string& where, const doctor_arguments& wanted) {
  return compose::is_postgres(where) ? examine_server(where, wanted) : examine_local(where, wanted);
}

int examine_all(const context& shared, const doctor_arguments& wanted) {
  std::vector<named_diagnosis> all;
  failures_by_name failed;
  for (const auto& one : shared.file()->services)
    failed.attempt(one.name, [&] { all.push_back({one.name, examine(one.database, wanted)}); });
  fmt::print("{}", shared.json ? diagnoses_json(all, failed) : diagnoses_text(all));
  std::fflush(stdout);
  failed.throw_if_any();
  const bool healthy =
      std::ranges::all_of(all, [](const auto& one) { return doctor::healthy(one.of.findings); });
  return healthy ? exit_ok : exit_found;
}

int doctor_command(const context& shared, const doctor_arguments& wanted) {
  if (wanted.table.empty() && shared.means_all_services()) return examine_all(shared, wanted);
  const auto of = examine(shared.service_path(), wanted);
  fmt::print("{}", shared.json ? diagnosis_json(of) : diagnosis_text(of));
  return doctor::healthy(of.findings) ? exit_ok : exit_found;
}

}  // namespace

void add_doctor(command_syntax to, context& shared) {
  const auto command = to.add_subcommand(
      "doctor",
      "Examine a database: what is wrong, why it matters, and the statement that fixes it.\n"
      "Reads only; safe while other processes write. Exit code 0 if it is healthy or has\n"
      "warnings only, 1 if there are problems. With --config and no --service every service is\n"
      "examined; those that cannot be are named at the end.");
  const auto wanted = std::make_shared<doctor_arguments>();
  command
      .add_option("--table", wanted->table,
                  "Judge an outbox table of your own instead (PostgreSQL): does it lose late\n"
                  "commits, keep order, bloat? With its schema where needed: sales.outbox")
      .option_text("NAME");
  command
      .add_option("--older-than", wanted->older_than,
                  "PostgreSQL: name transactions that have been open for longer than this.\n"
                  "Default: 300")
      .option_text("SECONDS")
      .between(std::int64_t{0}, std::int64_t{86'400'000});
  command
      .add_flag("--check-integrity", wanted->integrity,
                "SQLite: also read the whole file and look for damage; takes its time")
      .option_text(" ");
  describe_command(command,
                   "  settle doctor\n"
                   "  settle doctor --database 'host=db.internal dbname=orders user=orders'\n"
                   "  settle doctor --config settled.toml --service orders\n"
                   "  settle doctor --database postgresql://db.internal/orders --table public.my_outbox\n"
                   "  settle doctor --json | jq -r '.findings[] | select(.severity == \"problem\") | .fix'");
  command.callback(
      [&shared, wanted] { shared.run = [&shared, wanted] { return doctor_command(shared, *wanted); }; });
}

}  // namespace settle::cli
