#include "outbox/table_sql.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "outbox/lanes.hpp"

namespace settle::outbox {
namespace {

constexpr int reason_letters_max = 1000;

using sql::doubled;

// Literals, not parameters: only so does the planner see that a partial index will do.
std::string pending_condition(const table_mapping& mapping) {
  if (!mapping.status.empty()) return quoted_name(mapping.status) + " = " + quoted_text(mapping.pending_word);
  if (!mapping.published.empty()) return "not " + quoted_name(mapping.published);
  if (!mapping.published_at.empty()) return quoted_name(mapping.published_at) + " is null";
  return "true";
}

std::string text_of(const std::string& column) {
  return column.empty() ? "null::text" : quoted_name(column) + "::text";
}

std::string text_or_empty(const std::string& column) {
  return column.empty() ? "''::text" : fmt::format("coalesce({}::text, '')", quoted_name(column));
}

std::string payload_of(const table_column& column) {
  return column.base == "bytea" ? quoted_name(column.name) : text_of(column.name);
}

std::string time_of(const std::string& column) {
  if (column.empty()) return "null::timestamptz";
  return fmt::format("case when isfinite({0}) then {0} end", quoted_name(column));
}

// Rows that wait, of our shares, and not held back. The lane is a hash: it is not computed for one who owns
// everything. The order is that of the table's columns (o.), not of what is selected under their names as
// text.
std::string waiting_rows(const table_mapping& mapping) {
  return fmt::format(
      "from {table} as o where {pending}"
      " and ($1::integer = {all} or ($1::integer >>"
      " (settle.lane(case when {key} = '' then {id}::text else {key} end) & {last_share})) & 1 = 1)"
      " and not (case when {key} = '' then 'i' || {id}::text else 'k' || {topic} || chr(31) || {key} end"
      " = any (array(select json_array_elements_text($2::json))))"
      " order by {order}o.{id} limit $3",
      fmt::arg("table", quoted_table(mapping)), fmt::arg("pending", pending_condition(mapping)),
      fmt::arg("all", (1 << share_count) - 1), fmt::arg("last_share", share_count - 1),
      fmt::arg("topic", text_or_empty(mapping.topic.column)), fmt::arg("key", text_or_empty(mapping.key)),
      fmt::arg("id", quoted_name(mapping.id)),
      fmt::arg("order", mapping.order_by.empty() ? "" : "o." + quoted_name(mapping.order_by) + ", "));
}

std::string read_statement(const table_mapping& mapping, const table_shape& shape) {
  return fmt::format("select {}::text, {}, {}, {}, {}, {}, {}, {}, {}, {} {}", quoted_name(mapping.id),
                     text_of(mapping.event_id), text_of(mapping.topic.column), text_of(mapping.type.column),
                     text_of(mapping.aggregate_type.column), text_or_empty(mapping.key),
                     payload_of(*shape.column(mapping.payload)), text_of(mapping.headers),
                     time_of(mapping.created_at),
                     mapping.attempts.empty() ? "null::bigint" : quoted_name(mapping.attempts) + "::bigint",
                     waiting_rows(mapping));
}

std::string mark_statement(const table_mapping& mapping, const table_shape& shape) {
  const auto these =
      fmt::format("where {} = any (array(select x::{} from json_array_elements_text($1::json) x)) and {}",
                  quoted_name(mapping.id), shape.column(mapping.id)->type, pending_condition(mapping));
  // The time is named in any case, so that callers need not know whether somebody wants it.
  if (mapping.after_publish == after_publish::remove)
    return fmt::format("delete from {} {} and $2::bigint is not null", quoted_table(mapping), these);
  std::vector<std::string> changes;
  if (!mapping.status.empty())
    changes.push_back(quoted_name(mapping.status) + " = " + quoted_text(mapping.published_word));
  if (!mapping.published.empty()) changes.push_back(quoted_name(mapping.published) + " = true");
  if (const auto* at = shape.column(mapping.published_at))
    changes.push_back(fmt::format("{} = (timestamptz 'epoch' + $2::bigint * interval '1 microsecond'){}",
                                  quoted_name(at->name),
                                  at->base == "timestamp" ? " at time zone 'UTC'" : ""));
  return fmt::format("update {} set {} {} and $2::bigint is not null", quoted_table(mapping),
                     fmt::join(changes, ", "), these);
}

std::string failure_statement(const table_mapping& mapping, const table_shape& shape, bool gives_up) {
  std::vector<std::string> changes;
  if (gives_up) changes.push_back(quoted_name(mapping.status) + " = " + quoted_text(mapping.failed_word));
  if (!mapping.attempts.empty()) changes.push_back(quoted_name(mapping.attempts) + " = $3::bigint");
  if (const auto* reason = shape.column(mapping.last_error)) {
    constexpr int header = 4;  // that a length's modifier counts
    const int letters = reason->modifier > header ? std::min(reason->modifier - header, reason_letters_max)
                                                  : reason_letters_max;
    changes.push_back(fmt::format("{} = left($2::text, {})", quoted_name(reason->name), letters));
  }
  if (changes.empty()) return {};
  return fmt::format("update {} set {} where {} = $1::{} and {} and ($2::text, $3::bigint) is not null",
                     quoted_table(mapping), fmt::join(changes, ", "), quoted_name(mapping.id),
                     shape.column(mapping.id)->type, pending_condition(mapping));
}

}  // namespace

// A backslash means itself or not, depending on a setting of the session; in an E'' it never does.
std::string quoted_text(std::string_view text) {
  const auto plain = doubled(text, '\'');
  if (plain.find('\\') == std::string::npos) return "'" + plain + "'";
  return "E'" + doubled(plain, '\\') + "'";
}

table_name split_name(std::string_view qualified) {
  const auto dot = qualified.find('.');
  if (dot == std::string_view::npos) return {"", std::string(qualified)};
  return {std::string(qualified.substr(0, dot)), std::string(qualified.substr(dot + 1))};
}

std::string quoted_table(const table_mapping& mapping) {
  const auto name = split_name(mapping.table);
  return quoted_name(name.schema) + "." + quoted_name(name.table);
}

const std::string& deciding_column(const table_mapping& mapping) {
  if (!mapping.status.empty()) return mapping.status;
  return mapping.published.empty() ? mapping.published_at : mapping.published;
}

const std::string& order_column(const table_mapping& mapping) {
  return mapping.order_by.empty() ? mapping.id : mapping.order_by;
}

bool has_failed_state(const table_mapping& mapping) {
  return !mapping.status.empty() && !mapping.failed_word.empty();
}

table_statements statements_of(const table_mapping& mapping, const table_shape& shape) {
  return {
      .read = read_statement(mapping, shape),
      .peek = "select 1 " + waiting_rows(mapping),
      .mark = mark_statement(mapping, shape),
      .charge = failure_statement(mapping, shape, false),
      .give_up = has_failed_state(mapping) ? failure_statement(mapping, shape, true) : "",
  };
}

std::string index_statement(const table_mapping& mapping) {
  const bool by_id = order_column(mapping) == mapping.id;
  return fmt::format("create index concurrently on {} ({}{}){}", quoted_table(mapping),
                     quoted_name(order_column(mapping)), by_id ? "" : ", " + quoted_name(mapping.id),
                     deciding_column(mapping).empty() ? "" : " where " + pending_condition(mapping));
}

}  // namespace settle::outbox
