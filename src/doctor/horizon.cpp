// Who keeps vacuum from working: sessions, standbys, prepared transactions, slots.
#include <fmt/format.h>

#include "doctor/checks.hpp"
#include "doctor/words.hpp"
#include "queries/doctor.hpp"

namespace settle::doctor {
namespace {

constexpr const char* price_of_a_horizon =
    "vacuum removes nothing that became dead after it began, so tables that are updated grow, Settle's "
    "shares and "
    "members among them; a leaf of the outbox that it has touched cannot be emptied";

severity by_age(duration age, const limits& normal) {
  return age >= normal.transaction_age_problem ? severity::problem : severity::warning;
}

std::string held_back(const value& transactions) {
  if (transactions.is_null()) return "holds locks, but no snapshot";
  return fmt::format("holds back vacuum by {}", counted(transactions.integer(), "transaction"));
}

void find_old_transactions(transaction& tx, const limits& normal, findings& into) {
  namespace columns = queries::doctor::old_transactions_columns;
  const auto rows = tx.execute(queries::doctor::old_transactions, {normal.transaction_age.count()});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const bool idle = row[columns::state].text().starts_with("idle in transaction");
    const auto age = microseconds(row[columns::age].integer());
    into.push_back({.level = by_age(age, normal),
                    .code = idle ? "idle_in_transaction" : "long_transaction",
                    .title = idle ? "A session sits idle in an open transaction"
                                  : "A transaction has been running for long",
                    .seen = fmt::format(
                        "process {} of {} ({}, from {}), {} for {}, {}; last statement: {}",
                        row[columns::pid].integer(), row[columns::user].text(), row[columns::program].text(),
                        row[columns::host].text(), row[columns::state].text(), age_text(age),
                        held_back(row[columns::transactions]), row[columns::statement].text()),
                    .why = price_of_a_horizon,
                    .advice = idle ? "Ending the session rolls its transaction back. "
                                     "idle_in_transaction_session_timeout does it by itself next time."
                                   : "Ending the session rolls its transaction back.",
                    .fix = fmt::format("select pg_terminate_backend({});", row[columns::pid].integer())});
  }
}

void find_standbys(transaction& tx, const limits& normal, findings& into) {
  namespace columns = queries::doctor::standby_horizons_columns;
  const auto rows = tx.execute(queries::doctor::standby_horizons, {normal.horizon_transactions});
  for (std::size_t i = 0; i < rows.size(); ++i)
    into.push_back(
        {.level = severity::warning,
         .code = "standby_horizon",
         .title = "A standby holds back vacuum here",
         .seen = fmt::format("{} {} {} by {} (hot_standby_feedback)",
                             rows[i][columns::slot].text().empty() ? "standby" : "slot",
                             rows[i][columns::program].text(), rows[i][columns::host].text(),
                             counted(rows[i][columns::transactions].integer(), "transaction")),
         .why = price_of_a_horizon,
         .advice = "Run this on the standby: it ends the queries there that have lasted for long. To allow "
                   "them and "
                   "have them cancelled by replication instead, switch hot_standby_feedback off there.",
         .fix =
             fmt::format("select pg_terminate_backend(pid) from pg_stat_activity "
                         "where backend_type = 'client backend' and pid <> pg_backend_pid() "
                         "and xact_start < now() - interval '{} seconds';",
                         std::chrono::duration_cast<std::chrono::seconds>(normal.transaction_age).count())});
}

void find_prepared(transaction& tx, const limits& normal, findings& into) {
  namespace columns = queries::doctor::prepared_transactions_columns;
  const auto rows = tx.execute(queries::doctor::prepared_transactions, {normal.transaction_age.count()});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const auto& tables = row[columns::tables].text();
    into.push_back(
        {.level = severity::problem,
         .code = "prepared_transaction",
         .title = "A prepared transaction waits for its second phase",
         .seen = fmt::format("{}, prepared by {} {} ago, {}{}", row[columns::quoted_gid].text(),
                             row[columns::owner].text(), age_text(microseconds(row[columns::age].integer())),
                             held_back(row[columns::transactions]),
                             tables.empty() ? "" : "; it has locked " + tables),
         .why = fmt::format("it outlives its session and every restart, and nobody ends it but you: {}",
                            price_of_a_horizon),
         .advice =
             fmt::format("Ask its coordinator first. If the other participants have committed, say instead: "
                         "commit prepared {};",
                         row[columns::quoted_gid].text()),
         .fix = fmt::format("rollback prepared {};", row[columns::quoted_gid].text())});
  }
}

void find_idle_slots(transaction& tx, const limits& normal, findings& into) {
  namespace columns = queries::doctor::idle_slots_columns;
  const auto rows = tx.execute(queries::doctor::idle_slots);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const auto kept = row[columns::log_bytes].integer();
    const bool lost = row[columns::wal_status].text() == "lost";
    auto seen = fmt::format("{} slot {} keeps {} of log", row[columns::type].text(),
                            row[columns::slot].text(), size_text(kept));
    for (const auto* xmin : {&row[columns::row_transactions], &row[columns::catalog_transactions]})
      if (!xmin->is_null()) seen += ", " + held_back(*xmin);
    if (lost) seen += "; its log is already gone, so nobody can use it any more";
    into.push_back(
        {.level = kept >= normal.slot_bytes || lost ? severity::problem : severity::warning,
         .code = "idle_slot",
         .title = "Nobody reads a replication slot",
         .seen = seen,
         .why = "the server keeps all log from there on, until the disk is full and it stops",
         .advice = row[columns::is_here].integer() != 0
                       ? "Start its reader, or drop it if that is gone for good."
                       : fmt::format("Start its reader, or drop it if that is gone for good. Connect to "
                                     "its database, {}, for that.",
                                     row[columns::database].text()),
         .fix = fmt::format("select pg_drop_replication_slot({});", row[columns::quoted_slot].text())});
  }
}

void find_blindness(transaction& tx, const limits&, findings& into) {
  namespace columns = queries::doctor::sees_sessions_columns;
  const auto row = tx.execute(queries::doctor::sees_sessions);
  if (row[0][columns::sees].integer() != 0) return;
  into.push_back(
      {.level = severity::warning,
       .code = "sessions_hidden",
       .title = "This role may not see the sessions of others",
       .seen = fmt::format("{} is not a member of pg_read_all_stats", row[0][columns::role].text()),
       .why = "long transactions of other roles were not judged",
       .fix = fmt::format("grant pg_monitor to {};", row[0][columns::role].text())});
}

constexpr check all[] = {
    {"the sessions of this server", "Other sessions can be seen", find_blindness},
    {"open transactions", "No transaction has been open for long", find_old_transactions},
    {"standbys", "No standby holds back vacuum", find_standbys},
    {"prepared transactions", "No prepared transaction was forgotten", find_prepared},
    {"replication slots", "No replication slot is without a reader", find_idle_slots},
};

}  // namespace

std::span<const check> horizon_checks() { return all; }

}  // namespace settle::doctor
