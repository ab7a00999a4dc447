#include "outbox/table_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.hpp"
#include "base/json.hpp"
#include "base/nearest_name.hpp"
#include "base/text.hpp"
#include "outbox/table_sql.hpp"
#include "queries/outbox.hpp"
#include "settle/error.hpp"

namespace settle::outbox {
namespace {

using types = std::span<const std::string_view>;
constexpr types any_type;
constexpr std::string_view payload_types[] = {"bytea", "text", "varchar", "json", "jsonb"};
constexpr std::string_view json_types[] = {"json", "jsonb", "text", "varchar"};
constexpr std::string_view time_types[] = {"timestamptz", "timestamp"};
constexpr std::string_view integer_types[] = {"int2", "int4", "int8"};
constexpr std::string_view text_types[] = {"text", "varchar", "bpchar"};
constexpr std::string_view boolean_type[] = {"bool"};

// What a mapping says of one column.
struct mapped {
  std::string_view field;
  const std::string& column;
  types allowed;
};

std::vector<mapped> mapped_columns(const table_mapping& m) {
  return {{"id", m.id, any_type},
          {"order_by", m.order_by, any_type},
          {"event_id", m.event_id, any_type},
          {"topic.column", m.topic.column, any_type},
          {"type.column", m.type.column, any_type},
          {"aggregate_type.column", m.aggregate_type.column, any_type},
          {"key", m.key, any_type},
          {"payload", m.payload, payload_types},
          {"headers", m.headers, json_types},
          {"created_at", m.created_at, time_types},
          {"status", m.status, any_type},
          {"published", m.published, boolean_type},
          {"published_at", m.published_at, time_types},
          {"attempts", m.attempts, integer_types},
          {"last_error", m.last_error, text_types}};
}

[[noreturn]] void refuse(const std::string& why) { throw error(errc::invalid_argument, why); }

void check_words(const table_mapping& m) {
  if (m.status.empty()) return;
  const bool failed = !m.failed_word.empty();
  if (m.pending_word.empty() || m.published_word.empty())
    refuse("table_mapping.pending_word and published_word must not be empty where a status is mapped");
  if (m.pending_word == m.published_word ||
      (failed && (m.failed_word == m.pending_word || m.failed_word == m.published_word)))
    refuse("table_mapping.pending_word, published_word and failed_word must differ");
  for (const auto* word : {&m.pending_word, &m.published_word, &m.failed_word})
    check_name(*word, {"status word", event_limits::name_bytes_max, true});
}

void check_labels(const table_mapping& m, const table_shape& shape) {
  const auto* status = shape.column(m.status);
  if (status == nullptr || status->labels.empty()) return;
  const auto check = [&](std::string_view field, const std::string& word) {
    if (word.empty() || std::ranges::find(status->labels, word) != status->labels.end()) return;
    refuse(fmt::format("table_mapping.{} is '{}', which the enum {} of {}.{} does not have; it has: {}",
                       field, word, status->type, m.table, m.status, fmt::join(status->labels, ", ")));
  };
  check("pending_word", m.pending_word);
  if (m.after_publish == after_publish::mark) check("published_word", m.published_word);
  check("failed_word", m.failed_word);
}

bool is_one_of(std::string_view base, types allowed) {
  return std::ranges::find(allowed, base) != allowed.end();
}

}  // namespace

const table_column* table_shape::column(std::string_view name) const {
  if (name.empty()) return nullptr;
  const auto found = std::ranges::find(columns, name, &table_column::name);
  SETTLE_CHECK(found != columns.end(), "a mapped column is there");
  return &*found;
}

void check_mapping(const table_mapping& m) {
  const auto name = split_name(m.table);
  if (name.schema.empty() || name.table.empty())
    refuse(fmt::format("table_mapping.table is '{}'; write it as schema.table, e.g. public.outbox", m.table));
  if (m.id.empty()) refuse("table_mapping.id must name a unique column");
  if (m.payload.empty()) refuse("table_mapping.payload must name a column");
  for (const auto& [field, value] : {std::pair{"topic", &m.topic}, std::pair{"type", &m.type}})
    if (value->column.empty() && value->text.empty())
      refuse(fmt::format("table_mapping.{} must name a column or be a fixed text", field));
  for (const auto& one : mapped_columns(m))
    check_name(one.column,
               {"column of table_mapping." + std::string(one.field), event_limits::name_bytes_max, true});
  check_words(m);
  if (m.after_publish == after_publish::mark && deciding_column(m).empty())
    refuse(
        "table_mapping has no column that says whether a row is published: name status, published or "
        "published_at, or set after_publish to remove");
}

table_shape read_shape(transaction& tx, const table_mapping& m, const std::string& database) {
  const auto name = split_name(m.table);
  const auto found = tx.execute(queries::outbox::find_table, {name.schema, name.table});
  if (found.empty()) {
    const auto rows = tx.execute(queries::outbox::list_tables);
    std::vector<std::string> others;
    for (std::size_t i = 0; i < rows.size(); ++i)
      others.push_back(rows[i][queries::outbox::list_tables_columns::name].text());
    const auto hint = others.empty() ? "there is no table of yours at all"
                                     : fmt::format("did you mean {}?", nearest_name(m.table, others));
    refuse(fmt::format("{} has no table {} that this user can see; {}", database, m.table, hint));
  }
  table_shape shape{.oid = found[0][queries::outbox::find_table_columns::oid].integer(), .columns = {}};
  namespace columns = queries::outbox::list_columns_columns;
  const auto rows = tx.execute(queries::outbox::list_columns, {shape.oid});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    auto& column = shape.columns.emplace_back();
    column.name = row[columns::name].text();
    column.type = row[columns::type].text();
    column.base = row[columns::base].text();
    column.modifier = static_cast<int>(row[columns::modifier].integer());
    column.number = static_cast<int>(row[columns::number].integer());
    for (const auto& [label, unused] : attributes_from_json(row[columns::labels].text()))
      column.labels.push_back(label);
  }
  return shape;
}

void check_fit(const table_mapping& m, const table_shape& shape) {
  std::vector<std::string> names;
  for (const auto& one : shape.columns) names.push_back(one.name);
  for (const auto& one : mapped_columns(m)) {
    if (one.column.empty()) continue;
    const auto found = std::ranges::find(shape.columns, one.column, &table_column::name);
    if (found == shape.columns.end())
      refuse(fmt::format(
          "table_mapping.{} is '{}', but {} has no such column; did you mean '{}'? It has: {}. "
          "Set the field to \"\" if the table has nothing of the kind",
          one.field, one.column, m.table, nearest_name(one.column, names), fmt::join(names, ", ")));
    if (!one.allowed.empty() && !is_one_of(found->base, one.allowed))
      refuse(fmt::format("table_mapping.{} is '{}', which is {} in {}; it has to be one of: {}", one.field,
                         one.column, found->type, m.table, fmt::join(one.allowed, ", ")));
  }
  check_labels(m, shape);
}

std::vector<table_advice> judge_table(transaction& tx, const table_mapping& m, const table_shape& shape) {
  const auto& order = *shape.column(order_column(m));
  const auto* decides = shape.column(deciding_column(m));
  namespace columns = queries::outbox::judge_indexes_columns;
  const auto judged = tx.execute(queries::outbox::judge_indexes,
                                 {shape.oid, shape.column(m.id)->number, order.number,
                                  decides == nullptr ? 0 : decides->number, quoted_table(m), order.name});
  std::vector<table_advice> all;
  if (judged[0][columns::is_unique].integer() == 0)
    all.push_back(
        {"table_relay_id_not_unique",
         "no unique index on " + m.id + " alone: if two rows share an id, marking one loses the other",
         fmt::format("create unique index concurrently on {} ({})", quoted_table(m), quoted_name(m.id))});
  if (judged[0][columns::finds_waiting].integer() == 0)
    all.push_back({"table_relay_index_missing",
                   "no index finds the rows that wait: every look reads past those that are published",
                   index_statement(m)});
  if (!judged[0][columns::sequence_cache].is_null() && judged[0][columns::sequence_cache].integer() > 1)
    all.push_back(
        {"table_relay_sequence_cached",
         fmt::format("sessions take {} numbers of {} at a time: a later commit may have a lower one, "
                     "and the order of a key is lost",
                     judged[0][columns::sequence_cache].integer(), order.name),
         fmt::format("alter sequence {} cache 1", judged[0][columns::sequence].text())});
  if (!is_one_of(order.base, integer_types) && !is_one_of(order.base, time_types))
    all.push_back({"table_relay_order_unknown",
                   fmt::format("{} is {}: rows are published in its order, which need not be that of their "
                               "commits; name a serial or a timestamp in order_by",
                               order.name, order.type),
                   ""});
  return all;
}

}  // namespace settle::outbox
