#include <fmt/format.h>

#include <algorithm>

#include "doctor/table.hpp"
#include "queries/doctor.hpp"
#include "settle/error.hpp"

namespace settle::doctor {
namespace {

std::vector<column> read_columns(transaction& tx, std::int64_t oid) {
  const auto rows = tx.execute(queries::doctor::table_columns, {oid});
  std::vector<column> all;
  for (std::size_t i = 0; i < rows.size(); ++i)
    all.push_back({rows[i][0].text(), rows[i][1].text(), rows[i][2].text(), rows[i][3].integer() != 0,
                   rows[i][4].text(), rows[i][5].integer() != 0, rows[i][6].integer(), rows[i][7].text()});
  return all;
}

std::vector<table_index> read_indexes(transaction& tx, std::int64_t oid, const layout& shape) {
  const auto rows =
      tx.execute(queries::doctor::table_indexes, {oid, shape.status ? shape.status->name : std::string()});
  std::vector<table_index> all;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i][0].integer() != last)
      all.push_back({rows[i][1].integer() != 0,
                     rows[i][2].integer() != 0,
                     rows[i][3].text(),
                     {},
                     rows[i][5].integer() != 0});
    last = rows[i][0].integer();
    all.back().columns.push_back(rows[i][4].text());
  }
  return all;
}

table_activity read_activity(transaction& tx, std::int64_t oid) {
  const auto rows = tx.execute(queries::doctor::table_activity, {oid});
  const auto& row = rows[0];
  table_activity of;
  of.live = row[0].integer();
  of.dead = row[1].integer();
  of.inserted = row[2].integer();
  of.updated = row[3].integer();
  of.updated_in_place = row[4].integer();
  of.deleted = row[5].integer();
  if (!row[6].is_null()) of.vacuumed = row[6].time();
  of.bytes = row[7].integer();
  of.row_bytes = row[8].integer();
  return of;
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
  const auto found = find_table(tx, table);
  tx.post(queries::doctor::qualify_names);
  const auto& kind = found[0][3].text();
  if (kind != "r" && kind != "p")
    throw error(errc::invalid_argument,
                fmt::format("{} is not a table; name the table that holds the rows", found[0][1].text()));
  if (found[0][5].integer() != 0)
    throw error(errc::invalid_argument,
                fmt::format("{} is Settle's own; it is judged without --table", found[0][1].text()));
  const auto oid = found[0][0].integer();
  table_facts of;
  of.name = found[0][1].text();
  of.plain = found[0][2].text();
  of.partitioned = kind == "p";
  of.unlogged = found[0][4].text() == "u";
  of.fillfactor = static_cast<int>(found[0][6].integer());
  of.autovacuum_disabled = found[0][7].integer() != 0;
  of.columns = read_columns(tx, oid);
  of.shape = read_layout(of.columns);
  of.indexes = read_indexes(tx, oid, of.shape);
  of.activity = read_activity(tx, oid);
  const auto triggers = tx.execute(queries::doctor::notifying_triggers, {oid});
  for (std::size_t i = 0; i < triggers.size(); ++i)
    of.notifying.emplace_back(triggers[i][0].text(), triggers[i][1].text());
  of.logical_slots = tx.execute(queries::doctor::logical_slots)[0][0].integer();
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
