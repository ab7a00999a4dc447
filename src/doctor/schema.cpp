// Settle's own tables in PostgreSQL: keys, sequences, storage and rights as its statements need them.
#include <fmt/format.h>

#include <utility>

#include "doctor/checks.hpp"
#include "queries/doctor.hpp"

namespace settle::doctor {
namespace {

// Index builds do not stop writers; a primary key does for as long as it takes, and these tables are small.
std::string creation(const std::string& table, const std::string& columns, const std::string& kind) {
  if (kind == "primary key")
    return fmt::format("alter table settle.{} add primary key ({});", table, columns);
  return fmt::format("create {} concurrently on settle.{} ({});", kind == "index" ? "index" : "unique index",
                     table, columns);
}

void find_missing_keys(transaction& tx, const limits&, findings& into) {
  namespace columns = queries::doctor::missing_keys_columns;
  const auto rows = tx.execute(queries::doctor::missing_keys);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto &table = rows[i][columns::relation].text(), &key_columns = rows[i][columns::columns].text(),
               &kind = rows[i][columns::kind].text();
    if (rows[i][columns::is_there].integer() == 0) {
      into.push_back({.level = severity::problem,
                      .code = "missing_table",
                      .title = fmt::format("The table settle.{} is gone", table),
                      .why = "its migration was applied, so migrating again will not bring it back",
                      .advice = "Restore it from a backup."});
      continue;
    }
    const bool invalid = !rows[i][columns::invalid_index].is_null();
    into.push_back(
        {.level = severity::problem,
         .code = "missing_key",
         .title = fmt::format("settle.{} has no {} on {}", table, kind, key_columns),
         .seen = invalid ? fmt::format("{} is there, but its build failed",
                                       rows[i][columns::invalid_index].text())
                         : "",
         .why = kind == "index" ? "relays read whole tables instead of a few rows"
                                : "nothing keeps out a second row, so what was done once could be done twice",
         .advice = kind == "index" ? "" : "If it finds duplicates, look at them before you remove any.",
         .fix = (invalid ? fmt::format("drop index {};\n", rows[i][columns::invalid_index].text()) : "") +
                creation(table, key_columns, kind)});
  }
}

void find_odd_tables(transaction& tx, const limits&, findings& into) {
  namespace columns = queries::doctor::odd_tables_columns;
  const auto rows = tx.execute(queries::doctor::odd_tables);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& table = rows[i][columns::relation].text();
    if (rows[i][columns::unlogged].integer() != 0)
      into.push_back({.level = severity::problem,
                      .code = "unlogged_table",
                      .title = fmt::format("{} is unlogged", table),
                      .why = "a crash of the server empties it, and events are lost or done twice",
                      .fix = fmt::format("alter table {} set logged;", table)});
    if (rows[i][columns::autovacuum_off].integer() != 0)
      into.push_back({.level = severity::problem,
                      .code = "autovacuum_disabled",
                      .title = fmt::format("autovacuum is switched off for {}", table),
                      .why = "it grows with every update and gets slower to read",
                      .fix = fmt::format("alter table {} reset (autovacuum_enabled);", table)});
  }
}

void find_odd_sequences(transaction& tx, const limits&, findings& into) {
  namespace columns = queries::doctor::odd_sequences_columns;
  const auto rows = tx.execute(queries::doctor::odd_sequences);
  for (std::size_t i = 0; i < rows.size(); ++i)
    into.push_back({.level = severity::problem,
                    .code = "sequence_changed",
                    .title = fmt::format("{} does not count one by one", rows[i][columns::relation].text()),
                    .seen = fmt::format("cache {}, increment {}{}", rows[i][columns::cache].integer(),
                                        rows[i][columns::increment].integer(),
                                        rows[i][columns::cycles].integer() != 0 ? ", cycle" : ""),
                    .why =
                        "sessions that draw numbers in advance use them late: events of one key get numbers "
                        "against their order, and a tick can claim more than it has seen",
                    .fix = fmt::format("alter sequence {} cache 1 increment 1 no cycle;",
                                       rows[i][columns::relation].text())});
}

void find_loose_grants(transaction& tx, const limits&, findings& into) {
  namespace columns = queries::doctor::loose_grants_columns;
  const auto rows = tx.execute(queries::doctor::loose_grants);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto &table = rows[i][columns::relation].text(), &role = rows[i][columns::role].text(),
               &rights = rows[i][columns::rights].text();
    into.push_back({.level = severity::warning,
                    .code = "loose_grant",
                    .title = fmt::format("{} may write what relays rely on", role),
                    .seen = fmt::format("{} on {}", rights, table),
                    .why = "one statement of a program can lose events or give them another order",
                    .advice = fmt::format("Publishing needs less: grant settle_publisher to {};", role),
                    .fix = fmt::format("revoke {} on {}{} from {};", rights, rows[i][columns::kind].text(),
                                       table, role)});
  }
}

// As the migration has them. What relays and owners call is not among them.
std::string publisher_grants(const std::string& functions) {
  return fmt::format(
      "grant usage on schema settle to settle_publisher;\n"
      "grant execute on function {} to settle_publisher;\n"
      "grant insert (event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers, "
      "created_at, deliver_at, payload) on settle.outbox to settle_publisher;\n"
      "grant insert, select (id, event_id, created_at) on settle.outbox_events to settle_publisher;\n"
      "grant usage on sequence settle.outbox_seq to settle_publisher;\n"
      "grant select on sequence settle.outbox_ring to settle_publisher;\n"
      "grant insert, select on settle.natural_keys to settle_publisher;",
      functions);
}

void find_publisher(transaction& tx, const limits&, findings& into) {
  namespace columns = queries::doctor::publisher_role_columns;
  const auto row = tx.execute(queries::doctor::publisher_role);
  const bool exists = row[0][columns::is_there].integer() != 0,
             granted = row[0][columns::granted].integer() != 0;
  const auto& members = row[0][columns::members].text();
  if (exists && granted) {
    into.push_back({.code = "fine",
                    .title = members.empty()
                                 ? "The role settle_publisher is ready; no role is a member of it yet"
                                 : "settle_publisher is granted to " + members});
    return;
  }
  into.push_back({.level = severity::warning,
                  .code = "publisher_role",
                  .title = exists ? "settle_publisher lacks rights in this database"
                                  : "There is no role settle_publisher",
                  .why = "applications then publish as the owner, who may also write what relays rely on",
                  .fix = (exists ? "" : "create role settle_publisher nologin;\n") +
                         publisher_grants(row[0][columns::functions].text())});
}

constexpr check all[] = {
    {"Settle's keys", "Every key of Settle's tables is there", find_missing_keys},
    {"Settle's tables", "Settle's tables are logged and vacuumed", find_odd_tables},
    {"Settle's sequences", "Numbers are drawn one by one", find_odd_sequences},
    {"rights on the outbox", "Nobody but its owner may change the outbox", find_loose_grants},
    {"the role settle_publisher", "", find_publisher},
};

}  // namespace

std::span<const check> schema_checks() { return all; }

std::optional<finding> examine_publisher_role(database& db) {
  if (db.speaks() != dialect::postgres) return std::nullopt;
  findings found;
  auto tx = db.read();
  find_publisher(tx, {}, found);
  if (found[0].level == severity::ok) return std::nullopt;
  return std::move(found[0]);
}

}  // namespace settle::doctor
