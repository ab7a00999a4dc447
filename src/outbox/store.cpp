#include "outbox/store.hpp"

#include "outbox/lanes.hpp"
#include "queries/outbox.hpp"

namespace settle::outbox {

namespace columns = queries::outbox::read_window_columns;

message message_of(result& rows, std::size_t row, std::vector<changed_headers>& changed) {
  const auto& aggregate_type = rows[row][columns::aggregate_type].text();
  message m;
  m.id = rows.take(row, columns::event_id).take_text();
  m.topic = rows.take(row, columns::topic).take_text();
  m.type = rows.take(row, columns::event_type).take_text();
  m.key = rows.take(row, columns::aggregate_id).take_text();
  m.subject = aggregate_type.empty() || m.key.empty() ? m.key : aggregate_type + "/" + m.key;
  m.content_type = rows.take(row, columns::content_type).take_text();
  m.extensions = read_headers(rows[row][columns::headers].text(), m, changed);
  m.extensions["sequence"] = std::to_string(rows[row][columns::seq].integer());
  m.time = rows[row][columns::created_at].time();
  m.payload = rows.take(row, columns::payload).take_bytes();
  return m;
}

window_row window_row_of(const result::row& row) {
  const auto& deliver_at = row[columns::deliver_at];
  return {row[columns::seq].integer(), static_cast<int>(row[columns::lane].integer()) % share_count,
          deliver_at.is_null() ? std::nullopt : std::optional(deliver_at.time())};
}

std::unique_ptr<store> store_of(database& db, const relay_options& options) {
  return db.speaks() == dialect::sqlite ? sqlite_store(db, options) : postgres_store(db, options);
}

}  // namespace settle::outbox
