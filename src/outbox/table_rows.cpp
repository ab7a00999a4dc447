#include "outbox/table_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/check.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "outbox/lanes.hpp"
#include "outbox/natural_key.hpp"
#include "outbox/table_sql.hpp"
#include "settle/error.hpp"
#include "wire/attribute_names.hpp"

namespace settle::outbox {
namespace {

constexpr std::array in_foreign_tables{attribute_writer::cause, attribute_writer::natural_key};

constexpr std::int64_t attempts_counted_max = 10'000;  // what is never given up must not outgrow a smallint

std::string text_or_empty(result& rows, std::size_t row, std::size_t column) {
  auto cell = rows.take(row, column);
  return cell.is_null() ? std::string() : std::move(cell).take_text();
}

// Empty where a mapped column is null: the caller says whether that will do.
std::string value_of(const table_value& mapped, result& rows, std::size_t row, std::size_t column) {
  if (mapped.column.empty()) return mapped.text;
  auto held = text_or_empty(rows, row, column);
  return held.empty() ? held : mapped.text + held;
}

std::string payload_of(result& rows, std::size_t row) {
  auto cell = rows.take(row, read_column::payload);
  if (cell.is_null()) return {};
  return std::holds_alternative<blob>(cell.variant()) ? std::move(cell).take_bytes()
                                                      : std::move(cell).take_text();
}

// Consumers tell events apart by this id alone, so a number that other tables may also have will not do.
std::string event_id_of(const table_mapping& mapping, const table_origin& from, result& rows,
                        std::size_t row) {
  if (!mapping.event_id.empty()) {
    auto own = text_or_empty(rows, row, read_column::event_id);
    check_name(own, {"event id", event_limits::name_bytes_max});
    return own;
  }
  const auto& id = rows[row][read_column::id].text();
  const auto as_uuid = uuid::parse(id);
  return as_uuid ? as_uuid->text() : row_event_id(from.database, mapping.table, id).text();
}

table_row row_of(const result& rows, std::size_t row) {
  const auto& attempts = rows[row][read_column::attempts];
  const auto& topic = rows[row][read_column::topic];
  return {rows[row][read_column::id].text(), rows[row][read_column::key].text(),
          attempts.is_null() ? 0 : attempts.integer(), topic.is_null() ? std::string() : topic.text()};
}

}  // namespace

std::string wait_key(const table_row& of) {
  return of.key.empty() ? "i" + of.id : "k" + of.topic + '\x1f' + of.key;
}

int share_of(const table_row& of) { return lane_of(of.key, of.id) & (share_count - 1); }

message message_of(const table_mapping& mapping, const table_origin& from, result& rows, std::size_t row,
                   timestamp now) {
  message m;
  m.id = event_id_of(mapping, from, rows, row);
  m.source = from.source;
  m.topic = value_of(mapping.topic, rows, row, read_column::topic);
  m.type = value_of(mapping.type, rows, row, read_column::type);
  m.key = rows[row][read_column::key].text();
  const auto aggregate_type = value_of(mapping.aggregate_type, rows, row, read_column::aggregate_type);
  check_name(m.topic, {"topic", event_limits::name_bytes_max});
  check_name(m.type, {"event type", event_limits::name_bytes_max});
  check_name(m.key, {"key", event_limits::key_bytes_max, true});
  check_name(aggregate_type, {"aggregate type", event_limits::name_bytes_max, true});
  m.subject = aggregate_type.empty() || m.key.empty() ? m.key : aggregate_type + "/" + m.key;
  m.content_type = mapping.content_type;
  // Its headers had their names before Settle came, so that other names are no mistake to report.
  m.extensions =
      check_headers(attributes_from_json(text_or_empty(rows, row, read_column::headers)), in_foreign_tables)
          .extensions;
  const auto& created_at = rows[row][read_column::created_at];
  m.time = created_at.is_null() ? now : created_at.time();
  m.payload = payload_of(rows, row);
  return m;
}

table_batch batch_of(const table_mapping& mapping, const table_origin& from, result& found, timestamp now) {
  table_batch batch;
  std::set<std::string> stopped;
  for (std::size_t i = 0; i < found.size(); ++i) {
    auto row = row_of(found, i);
    if (stopped.contains(wait_key(row))) continue;
    try {
      auto m = message_of(mapping, from, found, i, now);
      batch.messages.push_back(std::move(m));
      batch.rows.push_back(std::move(row));
    } catch (const error& e) {
      stopped.insert(wait_key(row));
      batch.unfit.push_back({std::move(row), e.what()});
    }
  }
  return batch;
}

table_outcome judge_rows(const table_batch& sent, std::span<const publish_result> results) {
  SETTLE_CHECK(sent.rows.size() == results.size(), "a publisher returns one result per message");
  table_outcome outcome;
  std::set<std::string> stopped;
  for (std::size_t i = 0; i < sent.rows.size(); ++i) {
    const auto& row = sent.rows[i];
    if (!stopped.empty() && stopped.contains(wait_key(row))) continue;
    if (results[i].status == publish_status::confirmed) {
      outcome.published.push_back(row);
      continue;
    }
    stopped.insert(wait_key(row));
    if (results[i].status == publish_status::message_rejected)
      outcome.rejected.push_back({row, results[i].reason});
    else if (!outcome.down)
      outcome.down = results[i].reason;
  }
  for (const auto& one : sent.unfit)
    if (!stopped.contains(wait_key(one.row))) outcome.rejected.push_back(one);
  return outcome;
}

std::int64_t held_keys::rejected(const table_row& row, timestamp now) {
  forget_gone(now);
  auto& one = held_[wait_key(row)];
  if (one.row != row.id) one = {.row = row.id, .attempts = 0, .share = share_of(row), .until = {}};
  one.attempts = std::min(std::max(one.attempts, row.attempts) + 1, attempts_counted_max);
  one.until = now + pauses_.after(one.attempts);
  return one.attempts;
}

// Rows that somebody has taken away are never heard of again.
void held_keys::forget_gone(timestamp now) {
  constexpr int waits = 10;
  std::erase_if(held_, [&](const auto& entry) { return entry.second.until + waits * pauses_.longest < now; });
}

void held_keys::release(const table_row& row) {
  if (held_.empty()) return;
  const auto found = held_.find(wait_key(row));
  if (found != held_.end() && found->second.row == row.id) held_.erase(found);
}

void held_keys::drop_shares(std::span<const int> shares) {
  std::erase_if(held_, [&](const auto& entry) {
    return std::ranges::find(shares, entry.second.share) != shares.end();
  });
}

bool held_keys::full(timestamp now) const {
  const auto waiting =
      std::ranges::count_if(held_, [&](const auto& entry) { return waits(entry.second, now); });
  return static_cast<std::size_t>(waiting) >= keys_max;
}

std::string held_keys::waiting(timestamp now) const {
  json_array all;
  for (const auto& [key, one] : held_)
    if (waits(one, now)) all.add(key);
  return all.text();
}

timestamp held_keys::next(timestamp now, timestamp otherwise) const {
  auto earliest = otherwise;
  for (const auto& [key, one] : held_)
    if (waits(one, now)) earliest = std::min(earliest, one.until);
  return earliest;
}

}  // namespace settle::outbox
