#include "outbox/store.hpp"

#include "outbox/lanes.hpp"

namespace settle::outbox {

message message_of(result& rows, std::size_t row, std::vector<changed_headers>& changed) {
  const auto& aggregate_type = rows[row][5].text();
  message m;
  m.id = rows.take(row, 2).take_text();
  m.topic = rows.take(row, 3).take_text();
  m.type = rows.take(row, 4).take_text();
  m.key = rows.take(row, 6).take_text();
  m.subject = aggregate_type.empty() || m.key.empty() ? m.key : aggregate_type + "/" + m.key;
  m.content_type = rows.take(row, 7).take_text();
  m.extensions = read_headers(rows[row][8].text(), m, changed);
  m.extensions["sequence"] = std::to_string(rows[row][0].integer());
  m.time = rows[row][9].time();
  m.payload = rows.take(row, 10).take_bytes();
  return m;
}

window_row window_row_of(const result::row& row) {
  return {row[0].integer(), static_cast<int>(row[1].integer()) % share_count,
          row[11].is_null() ? std::nullopt : std::optional(row[11].time())};
}

std::unique_ptr<store> store_of(database& db, const relay_options& options) {
  return db.speaks() == dialect::sqlite ? sqlite_store(db, options) : postgres_store(db, options);
}

}  // namespace settle::outbox
