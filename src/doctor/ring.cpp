// The ring of leaves, the relays' logs and the history they belong to, on PostgreSQL.
#include <fmt/format.h>

#include "doctor/checks.hpp"
#include "doctor/words.hpp"
#include "queries/doctor.hpp"
#include "settle/driver/database.hpp"

namespace settle::doctor {
namespace {

void find_other_cluster(transaction& tx, const limits&, findings& into) {
  namespace columns = queries::doctor::outbox_cluster_columns;
  const auto row = tx.execute(queries::doctor::outbox_cluster);
  const auto server = identity_of(tx);
  if (!server || row[0][columns::system_identifier].is_null()) {
    into.push_back(
        {.level = severity::warning,
         .code = "cluster_unknown",
         .title = "The identity of this cluster cannot be read",
         .seen = server ? "it was not noted when the schema was made" : "pg_control_system() is refused",
         .why = "after a restore or a failover relays would go on with transaction ids of another "
                "history, and could skip events without a trace",
         .advice = "Run this as a superuser.",
         .fix = "grant execute on function pg_control_system(), pg_control_checkpoint() to public;\n"
                "select settle.note_cluster();"});
    return;
  }
  if (server->in_recovery) return;
  const cluster_identity known{row[0][columns::system_identifier].integer(),
                               row[0][columns::timeline].integer(), false};
  if (*server == known) return;
  into.push_back(
      {.level = severity::problem,
       .code = "cluster_changed",
       .title = "The outbox belongs to another history than this server",
       .seen =
           fmt::format("this is cluster {} on timeline {}; the outbox is of cluster {} on timeline {}",
                       server->system_identifier, server->timeline, known.system_identifier, known.timeline),
       .why = "relays have stopped: after a restore or a failover transaction ids are given out anew",
       .advice = "Make sure that this is the server that should be in use now.",
       .fix = "select settle.rebase_outbox();"});
}

// Why a leaf is not emptied: somebody holds it, or a share has not done what is in it. Each with its own fix.
void explain_leaf(transaction& tx, std::int64_t slot, const limits& normal, finding& into) {
  namespace columns = queries::doctor::leaf_pins_columns;
  const auto pins = tx.execute(queries::doctor::leaf_pins, {slot, normal.transaction_age.count()});
  for (std::size_t i = 0; i < pins.size(); ++i) {
    const auto& row = pins[i];
    const auto age = age_text(microseconds(row[columns::age].integer()));
    if (!row[columns::gid].is_null()) {
      into.seen +=
          fmt::format("; the prepared transaction {} holds it, for {}", row[columns::quoted_gid].text(), age);
      into.fix += fmt::format("rollback prepared {};\n", row[columns::quoted_gid].text());
      into.advice = "Ask the coordinator first; it may have to be commit prepared.";
    } else if (!row[columns::pid].is_null()) {
      into.seen += fmt::format("; process {} of {} ({}, {}) holds it, for {}", row[columns::pid].integer(),
                               row[columns::user].text(), row[columns::program].text(),
                               row[columns::state].text(), age);
      into.fix += fmt::format("select pg_terminate_backend({});\n", row[columns::pid].integer());
    }
  }
  const auto behind = tx.execute(queries::doctor::shares_behind, {tx.env().now() - normal.leaf_age});
  const auto& shares = behind[0][queries::doctor::shares_behind_columns::shares];
  if (!shares.is_null())
    into.seen += fmt::format("; shares {} have not published what is in it", shares.text());
  if (into.fix.empty()) {
    into.advice =
        "Relays turn the ring: see that one is running and what the shares that are behind fail at.";
  } else {
    into.fix.pop_back();
  }
}

void find_stuck_ring(transaction& tx, const limits& normal, findings& into) {
  namespace columns = queries::doctor::ring_state_columns;
  const auto state = tx.execute(queries::doctor::ring_state);
  const auto before = tx.env().now() - normal.leaf_age;
  const bool overdue = state[0][columns::opened_at].time() < before,
             full = state[0][columns::next_is_full].integer() != 0;
  if (!overdue || !full) return;
  const auto slot = state[0][columns::next_slot].integer();
  finding found{
      .level = severity::problem,
      .code = "ring_cannot_advance",
      .title = "The ring of the outbox cannot advance",
      .seen = fmt::format("settle.outbox_{} has been written to for {}, because settle.outbox_{} is not "
                          "empty",
                          state[0][columns::slot].integer(),
                          age_text(tx.env().now() - state[0][columns::opened_at].time()), slot),
      .why = "nothing is lost, but the leaf grows without end, and what is old stays"};
  explain_leaf(tx, slot, normal, found);
  into.push_back(std::move(found));
}

void find_large_logs(transaction& tx, const limits& normal, findings& into) {
  namespace columns = queries::doctor::large_logs_columns;
  const auto rows = tx.execute(queries::doctor::large_logs, {normal.log_bytes});
  for (std::size_t i = 0; i < rows.size(); ++i)
    into.push_back(
        {.level = severity::warning,
         .code = "large_log",
         .title = fmt::format("{} is unusually large", rows[i][columns::relation].text()),
         .seen =
             fmt::format("{}, about {} rows in use and {} dead", size_text(rows[i][columns::bytes].integer()),
                         rows[i][columns::live].integer(), rows[i][columns::dead].integer()),
         .why = "relays read it all the time; they remove old rows themselves, so something has kept "
                "them, or vacuum, from doing so",
         .advice = "First mend what holds back vacuum and shares that are behind. Relays wait while "
                   "this runs; publishers do not.",
         .fix = fmt::format("vacuum (full, analyze) {};", rows[i][columns::relation].text())});
}

constexpr check all[] = {
    {"the identity of the cluster", "The outbox belongs to this server", find_other_cluster},
    {"the ring of the outbox", "The ring of the outbox turns", find_stuck_ring},
    {"the relays' tables", "The relays' tables are small", find_large_logs},
};

}  // namespace

std::span<const check> ring_checks() { return all; }

}  // namespace settle::doctor
