#include <fmt/format.h>

#include <algorithm>

#include "doctor/checks.hpp"
#include "queries/doctor.hpp"
#include "settle/error.hpp"
#include "sql/migrations.hpp"

namespace settle::doctor {

std::string_view to_string(severity of) {
  switch (of) {
    case severity::problem:
      return "problem";
    case severity::warning:
      return "warning";
    case severity::ok:
      break;
  }
  return "ok";
}

bool healthy(const findings& all) {
  return std::ranges::none_of(all, [](const finding& one) { return one.level == severity::problem; });
}

namespace {

finding not_checked(const std::string& subject, const error& e) {
  return {.level = severity::warning,
          .code = "not_checked",
          .title = "Could not look at " + subject,
          .seen = e.what(),
          .why = "what could not be seen was not judged",
          .advice = "Run the doctor as the owner of the schema settle."};
}

}  // namespace

// A transaction for each: a statement that fails ends its transaction, and must not end the examination.
void run_checks(database& db, std::span<const check> all, const limits& normal, findings& into) {
  for (const auto& one : all) {
    const auto before = into.size();
    try {
      auto tx = db.read();
      if (db.speaks() == dialect::postgres) tx.post(queries::doctor::qualify_names);
      one.run(tx, normal, into);
    } catch (const error& e) {
      if (e.code() == errc::store_unavailable) throw;
      into.push_back(not_checked(one.subject, e));
    }
    if (into.size() == before) into.push_back({.level = severity::ok, .code = "fine", .title = one.fine});
  }
}

bool examine_schema(database& db, findings& into) try {
  const auto state = sql::read_migration_state(db, sql::service_migrations(db.speaks()));
  if (state.applied == state.known) {
    into.push_back(
        {.code = "fine", .title = fmt::format("The schema is that of this build ({})", state.known)});
    return true;
  }
  into.push_back(
      {.level = severity::problem,
       .code = state.applied == 0 ? "schema_missing" : "schema_behind",
       .title = state.applied == 0 ? "Settle's tables are not there" : "The schema is older than this build",
       .seen = fmt::format("{} of {} migrations are applied", state.applied, state.known),
       .why = "programs of this build refuse to work here until they have migrated",
       .advice = "With the same options:",
       .fix = "settle migrate"});
  return false;
} catch (const error& e) {
  if (e.code() == errc::statement_failed) {
    into.push_back(not_checked("Settle's tables", e));
    return false;
  }
  if (e.code() != errc::schema_newer && e.code() != errc::migration_changed) throw;
  into.push_back({.level = severity::problem,
                  .code = std::string(to_string(e.code())),
                  .title = e.code() == errc::schema_newer ? "The schema is newer than this build"
                                                          : "The schema was made by another build",
                  .seen = e.what(),
                  .why = "programs of this build refuse to work here",
                  .advice = "Install the version that made it; Settle's own tables were not examined."});
  return false;
}

namespace {

void find_damage(transaction& tx, const limits&, findings& into) {
  namespace columns = queries::doctor::quick_check_columns;
  const auto rows = tx.execute(queries::doctor::quick_check);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i][columns::problem].text() != "ok")
      into.push_back({.level = severity::problem,
                      .code = "damaged",
                      .title = "The file is damaged",
                      .seen = rows[i][columns::problem].text(),
                      .why = "what is read from it may be wrong",
                      .advice = "Restore the newest backup (settle restore) and keep the damaged file."});
}

constexpr check integrity_checks[] = {{"the file's structure", "The file's structure is sound", find_damage}};

}  // namespace

findings examine(database& db, const limits& normal) {
  findings all;
  const bool postgres = db.speaks() == dialect::postgres;
  if (postgres) {
    run_checks(db, horizon_checks(), normal, all);
    run_checks(db, setting_checks(), normal, all);
  }
  if (examine_schema(db, all)) {
    if (postgres) {
      run_checks(db, schema_checks(), normal, all);
      run_checks(db, ring_checks(), normal, all);
    }
    run_checks(db, outbox_checks(), normal, all);
  }
  if (!postgres && normal.check_integrity) run_checks(db, integrity_checks, normal, all);
  std::ranges::stable_sort(all, std::greater{}, &finding::level);
  return all;
}

}  // namespace settle::doctor
