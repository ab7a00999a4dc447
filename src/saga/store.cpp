#include "saga/store.hpp"

#include "base/hash.hpp"
#include "base/json.hpp"
#include "base/parts.hpp"
#include "queries/saga.hpp"
#include "saga/seams.hpp"

namespace settle::sagas {
namespace {

static_assert(queries::saga::find_due_columns::all == queries::saga::read_sagas_columns::all);

origin read_origin(const std::string& text) {
  auto all = attributes_from_json(text);
  return {all["correlationid"], {}, all["traceparent"], all["tracestate"]};
}

stored_saga read_saga(const result::row& row) {
  namespace columns = queries::saga::read_sagas_columns;
  stored_saga found;
  found.no = row[columns::no].integer();
  found.id = saga_id::parse(row[columns::id].text()).value();
  found.kind = row[columns::kind].integer();
  found.shard = static_cast<int>(row[columns::shard].integer());
  found.entity = row[columns::entity_id].text();
  found.status = status_from(row[columns::status].text());
  if (!row[columns::wanted].is_null()) found.wanted = row[columns::wanted].text();
  found.wakes = row[columns::wakes].integer();
  found.attempts = row[columns::attempts].integer();
  found.calling = row[columns::calling].integer() != 0;
  found.created_at = row[columns::created_at].time();
  if (!row[columns::deadline_at].is_null()) found.deadline = row[columns::deadline_at].time();
  found.input = row[columns::input].bytes();
  if (!row[columns::last_error].is_null()) found.last_error = row[columns::last_error].text();
  if (!row[columns::parent_no].is_null()) found.parent_no = row[columns::parent_no].integer();
  if (!row[columns::origin].is_null()) found.came_with = read_origin(row[columns::origin].text());
  return found;
}

journal_row read_row(const result::row& row) {
  namespace columns = queries::saga::read_journals_columns;
  const auto bytes = [](const value& of) { return of.is_null() ? std::nullopt : std::optional(of.bytes()); };
  journal_row found;
  found.n = static_cast<int>(row[columns::n].integer());
  found.kind = static_cast<row_kind>(row[columns::kind].integer());
  found.scope = row[columns::scope].text();
  found.name = row[columns::name].text();
  found.input = bytes(row[columns::input]);
  if (!row[columns::input_hash].is_null()) found.input_hash = row[columns::input_hash].integer();
  found.result = bytes(row[columns::result]);
  if (!row[columns::of].is_null()) found.of = static_cast<int>(row[columns::of].integer());
  found.at = row[columns::at].time();
  found.epoch = row[columns::epoch].integer();
  return found;
}

std::vector<stored_saga> read_all(const result& rows) {
  std::vector<stored_saga> all;
  all.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) all.push_back(read_saga(rows[i]));
  return all;
}

value bytes_or_null(const std::optional<std::string>& of) { return of ? value(blob{*of}) : value(); }

}  // namespace

int shard_of(saga_id of) { return static_cast<int>(stable_hash(of.text()) % shards); }

std::int64_t kind_number(std::string_view host, std::string_view type, int version) {
  std::string parts;
  append_part(parts, host);
  append_part(parts, type);
  append_part(parts, std::to_string(version));
  return static_cast<std::int64_t>(stable_hash(parts) >> 1);
}

std::optional<std::string> origin_text(const origin& of) {
  attributes all;
  if (!of.correlation_id.empty()) all["correlationid"] = of.correlation_id;
  if (!of.traceparent.empty()) all["traceparent"] = of.traceparent;
  if (!of.tracestate.empty()) all["tracestate"] = of.tracestate;
  return all.empty() ? std::nullopt : std::optional(to_json(all));
}

std::string json_list(std::span<const std::int64_t> numbers) {
  json_array list;
  for (const auto one : numbers) list.add(one);
  return list.text();
}

std::vector<stored_saga> find_due(transaction& tx, std::int64_t kind, const std::string& in_shards,
                                  timestamp now, std::size_t at_most) {
  return read_all(tx.execute(queries::saga::find_due, {kind, in_shards, now, at_most}));
}

std::vector<stored_saga> read_sagas(transaction& tx, std::span<const std::int64_t> numbers) {
  if (numbers.empty()) return {};
  return read_all(tx.execute(queries::saga::read_sagas, {json_list(numbers)}));
}

std::map<std::int64_t, journal> read_journals(transaction& tx, std::span<const std::int64_t> numbers) {
  std::map<std::int64_t, journal> found;
  if (numbers.empty()) return found;
  const auto rows = tx.execute(queries::saga::read_journals, {json_list(numbers)});
  for (std::size_t i = 0; i < rows.size(); ++i)
    found[rows[i][queries::saga::read_journals_columns::no].integer()].append(
        replayed(read_row(rows[i]), tx.env().now()));
  return found;
}

std::optional<timestamp> next_due(transaction& tx, std::int64_t kind, const std::string& in_shards) {
  const auto found = tx.execute(queries::saga::next_due, {kind, in_shards});
  const auto& at = found[0][queries::saga::next_due_columns::due_at];
  return at.is_null() ? std::nullopt : std::optional(at.time());
}

void append_rows(std::vector<parameters>& to, const instance& of) {
  for (auto n = of.rows_stored; n < of.rows.rows().size(); ++n) {
    const auto& row = of.rows.rows()[n];
    to.push_back({of.row.no, row.n, static_cast<int>(row.kind), row.scope, row.name, bytes_or_null(row.input),
                  row.input_hash, bytes_or_null(row.result), row.of, row.at, row.epoch});
  }
}

parameters saga_values(const instance& of) {
  const auto error = of.last_error.empty() ? std::nullopt : std::optional(of.last_error);
  const auto ended = has_ended(of.status) ? std::optional(of.now) : std::nullopt;
  parameters row;
  row.reserve(10);
  row.emplace_back(of.row.no);
  row.emplace_back(of.row.wakes);
  row.emplace_back(to_string(of.status));
  row.emplace_back(of.due_at());
  row.emplace_back(of.attempts);
  row.emplace_back(of.is_calling());
  row.emplace_back(error);
  row.push_back(bytes_or_null(of.result));
  row.emplace_back(ended);
  row.emplace_back(of.now);
  return row;
}

std::int64_t sweep_ended(database& db, timestamp before, std::int64_t at_most) {
  auto tx = db.begin();
  const auto found = tx.execute(queries::saga::find_ended, {before, at_most});
  std::vector<std::int64_t> gone;
  for (std::size_t i = 0; i < found.size(); ++i)
    gone.push_back(found[i][queries::saga::find_ended_columns::no].integer());
  if (gone.empty()) return 0;
  const auto list = json_list(gone);
  tx.post(queries::saga::drop_journals, {list});
  tx.post(queries::saga::drop_mail, {list});
  tx.post(queries::saga::drop_sagas, {list});
  tx.commit("saga.sweep");
  return static_cast<std::int64_t>(gone.size());
}

}  // namespace settle::sagas
