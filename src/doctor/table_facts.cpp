#include <fmt/format.h>

#include <algorithm>

#include "doctor/table.hpp"
#include "queries/doctor.hpp"
#include "settle/error.hpp"

namespace settle::doctor {
namespace {

std::vector<column> read_columns(transaction& tx, std::int64_t oid) {
  namespace columns = queries::doctor::table_columns_columns;
  const auto rows = tx.execute(queries::doctor::table_columns, {oid});
  std::vector<column> all;
  for (std::size_t i = 0; i < rows.size(); ++i)
    all.push_back({rows[i][columns::name].text(), rows[i][columns::quoted].text(),
                   rows[i][columns::type].text(), rows[i][columns::not_null].integer() != 0,
                   rows[i][columns::default_value].text(), rows[i][columns::is_counted].integer() != 0,
                   rows[i][columns::sequence_cache].integer(), rows[i][columns::sequence].text()});
  return all;
}

std::vector<table_index> read_indexes(transaction& tx, std::int64_t oid, const layout& shape) {
  namespace columns = queries::doctor::table_indexes_columns;
  const auto rows =
      tx.execute(queries::doctor::table_indexes, {oid, shape.status ? shape.status->name : std::string()});
  std::vector<table_index> all;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i][columns::index].integer() != last)
      all.push_back({rows[i][columns::is_primary].integer() != 0,
                     rows[i][columns::is_unique].integer() != 0,
                     rows[i][columns::predicate].text(),
                     {},
                     rows[i][columns::decided_by_status].integer() != 0});
    last = rows[i][columns::index].integer();
    all.back().columns.push_back(rows[i][columns::column_name].text());
  }
  return all;
}

table_activity read_activity(transaction& tx, std::int64_t oid) {
  namespace columns = queries::doctor::table_activity_columns;
  const auto rows = tx.execute(queries::doctor::table_activity, {oid});
  const auto& row = rows[0];
  table_activity of;
  of.live = row[columns::live].integer();
  of.dead = row[columns::dead].integer();
  of.inserted = row[columns::inserted].integer();
  of.updated = row[columns::updated].integer();
  of.updated_in_place = row[columns::updated_in_place].integer();
  of.deleted = row[columns::deleted].integer();
  if (!row[columns::vacuumed_at].is_null()) of.vacuumed = row[columns::vacuumed_at].time();
  of.bytes = row[columns::bytes].integer();
  of.row_bytes = row[columns::row_bytes].integer();
  return of;
}

std::vector<std::pair<std::string, std::string>> read_notifying_triggers(transaction& tx, std::int64_t oid) {
  namespace columns = queries::doctor::notifying_triggers_columns;
  const auto rows = tx.execute(queries::doctor::notifying_triggers, {oid});
  std::vector<std::pair<std::string, std::string>> all;
  for (std::size_t i = 0; i < rows.size(); ++i)
    all.emplace_back(rows[i][columns::name].text(), rows[i][columns::function].text());
  return all;
}

result find_table(transaction& tx, const std::string& table) {
  try {
    auto found = tx.execute(queries::doctor::find_table, {table});
    if (!found.empty()) return found;
  } catch (const error& e) {
    if (e.code() != errc::statement_failed) throw;  // else it cannot be a name
  }
  throw error(
      errc::invalid_argument,
      fmt::format("there is no table '{}' in this database; give its schema too (sales.outbox), and write "
                  "a name with capitals in double quotes",
                  table));
}

}  // namespace

table_facts read_table(transaction& tx, const std::string& table) {
  namespace columns = queries::doctor::find_table_columns;
  const auto found = find_table(tx, table);
  const auto row = found[0];
  tx.post(queries::doctor::qualify_names);
  const auto& kind = row[columns::kind].text();
  if (kind != "r" && kind != "p")
    throw error(errc::invalid_argument, fmt::format("{} is not a table; name the table that holds the rows",
                                                    row[columns::name].text()));
  if (row[columns::is_ours].integer() != 0)
    throw error(errc::invalid_argument,
                fmt::format("{} is Settle's own; it is judged without --table", row[columns::name].text()));
  const auto oid = row[columns::oid].integer();
  table_facts of;
  of.name = row[columns::name].text();
  of.plain = row[columns::plain_name].text();
  of.partitioned = kind == "p";
  of.unlogged = row[columns::persistence].text() == "u";
  of.fillfactor = static_cast<int>(row[columns::fillfactor].integer());
  of.autovacuum_disabled = row[columns::autovacuum_off].integer() != 0;
  of.columns = read_columns(tx, oid);
  of.shape = read_layout(of.columns);
  of.indexes = read_indexes(tx, oid, of.shape);
  of.activity = read_activity(tx, oid);
  of.notifying = read_notifying_triggers(tx, oid);
  of.logical_slots =
      tx.execute(queries::doctor::logical_slots)[0][queries::doctor::logical_slots_columns::slots].integer();
  return of;
}

findings examine_table(database& db, const std::string& table, const limits& normal) {
  if (db.speaks() != dialect::postgres)
    throw error(errc::invalid_argument,
                "only tables in PostgreSQL can be judged; " + db.name() + " is SQLite");
  auto tx = db.read();
  const auto facts = read_table(tx, table);
  const auto now = db.env().now();
  tx.rollback();
  findings all;
  judge_loss(facts, all);
  judge_order(facts, all);
  judge_keys(facts, all);
  judge_pending_index(facts, all);
  judge_bloat(facts, normal, now, all);
  judge_retention(facts, normal, all);
  judge_storage(facts, all);
  std::ranges::stable_sort(all, std::greater{}, &finding::level);
  return all;
}

}  // namespace settle::doctor
