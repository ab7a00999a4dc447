#include "inspect/sagas.hpp"

#include <algorithm>
#include <limits>

#include "base/json.hpp"
#include "queries/inspect.hpp"

namespace settle::inspect {
namespace {

constexpr std::string_view open_statuses[] = {"RUNNING", "COMPENSATING", "HELD"};

static_assert(queries::inspect::find_sagas_columns::all == queries::inspect::find_open_sagas_columns::all);
static_assert(queries::inspect::find_sagas_columns::all == queries::inspect::find_sagas_of_columns::all);
static_assert(queries::inspect::find_sagas_columns::all == queries::inspect::find_saga_columns::all);

std::optional<timestamp> time_or_null(const value& of) {
  return of.is_null() ? std::nullopt : std::optional(of.time());
}
std::optional<std::string> bytes_or_null(const value& of) {
  return of.is_null() ? std::nullopt : std::optional(of.bytes());
}

saga_line read_line(const result::row& row) {
  namespace columns = queries::inspect::read_saga_lines_columns;
  saga_line line;
  line.no = row[columns::no].integer();
  line.id = saga_id::parse(row[columns::id].text()).value();
  line.host = row[columns::host].text();
  line.type = row[columns::type].text();
  line.version = row[columns::version].integer();
  line.entity = row[columns::entity_id].text();
  line.status = row[columns::status].text();
  line.current_step = row[columns::current_step].text();
  line.attempts = row[columns::attempts].integer();
  line.last_error = row[columns::last_error].text();
  line.due_at = time_or_null(row[columns::due_at]);
  line.calling = row[columns::calling].integer() != 0;
  line.deadline = time_or_null(row[columns::deadline_at]);
  line.ended_at = time_or_null(row[columns::ended_at]);
  line.created_at = row[columns::created_at].time();
  line.updated_at = row[columns::updated_at].time();
  line.processes = row[columns::processes].integer();
  return line;
}

// Of sagas that a statement has found by their numbers, in the same snapshot.
std::vector<saga_line> read_lines(transaction& tx, const result& found) {
  json_array numbers;
  for (std::size_t i = 0; i < found.size(); ++i)
    numbers.add(found[i][queries::inspect::find_sagas_columns::no].integer());
  const auto rows = tx.execute(queries::inspect::read_saga_lines, {numbers.text(), tx.env().now()});
  std::vector<saga_line> lines;
  for (std::size_t i = 0; i < rows.size(); ++i) lines.push_back(read_line(rows[i]));
  return lines;
}

sagas::journal read_journal(transaction& tx, std::int64_t no) {
  namespace columns = queries::inspect::read_saga_rows_columns;
  const auto rows = tx.execute(queries::inspect::read_saga_rows, {no});
  sagas::journal all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    sagas::journal_row one;
    one.n = static_cast<int>(row[columns::n].integer());
    one.kind = static_cast<sagas::row_kind>(row[columns::kind].integer());
    one.scope = row[columns::scope].text();
    one.name = row[columns::name].text();
    one.input = bytes_or_null(row[columns::input]);
    one.result = bytes_or_null(row[columns::result]);
    if (!row[columns::of].is_null()) one.of = static_cast<int>(row[columns::of].integer());
    one.at = row[columns::at].time();
    one.epoch = row[columns::epoch].integer();
    all.append(std::move(one));
  }
  return all;
}

std::map<int, std::string> read_given(transaction& tx, std::int64_t no) {
  namespace columns = queries::inspect::read_saga_mail_columns;
  const auto rows = tx.execute(queries::inspect::read_saga_mail, {no});
  std::map<int, std::string> given;
  for (std::size_t i = 0; i < rows.size(); ++i)
    given[static_cast<int>(rows[i][columns::n].integer())] = rows[i][columns::event_id].text();
  return given;
}

}  // namespace

std::vector<open_sagas> count_open_sagas(transaction& tx) {
  namespace columns = queries::inspect::count_open_sagas_columns;
  const auto rows = tx.execute(queries::inspect::count_open_sagas, {tx.env().now()});
  std::vector<open_sagas> all;
  for (std::size_t i = 0; i < rows.size(); ++i)
    all.push_back({rows[i][columns::host].text(), rows[i][columns::type].text(),
                   rows[i][columns::version].integer(), rows[i][columns::status].text(),
                   rows[i][columns::sagas].integer(), rows[i][columns::oldest].time(),
                   rows[i][columns::processes].integer()});
  return all;
}

std::int64_t sagas_in(const std::vector<open_sagas>& of, std::string_view status) {
  std::int64_t sum = 0;
  for (const auto& one : of)
    if (one.status == status) sum += one.sagas;
  return sum;
}

std::vector<saga_line> list_sagas(database& db, const saga_filter& which, std::size_t at_most,
                                  std::int64_t before) {
  json_array statuses;
  for (const auto& one : which.statuses) statuses.add(one);
  if (which.statuses.empty())
    for (const auto& one : open_statuses) statuses.add(one);
  const bool open = std::ranges::all_of(which.statuses, [](const auto& one) {
    return std::ranges::find(open_statuses, one) != std::end(open_statuses);
  });
  auto tx = db.read();
  const auto below = before > 0 ? before : std::numeric_limits<std::int64_t>::max();
  const auto found = !which.entity.empty()
                         ? tx.execute(queries::inspect::find_sagas_of,
                                      {statuses.text(), which.host, which.type, below, at_most, which.entity})
                         : tx.execute(open ? queries::inspect::find_open_sagas : queries::inspect::find_sagas,
                                      {statuses.text(), which.host, which.type, below, at_most});
  return read_lines(tx, found);
}

std::optional<saga_state> read_saga(database& db, saga_id id) {
  auto tx = db.read();
  const auto found = tx.execute(queries::inspect::find_saga, {id});
  if (found.empty()) return std::nullopt;
  saga_state state{.line = read_lines(tx, found).front()};
  namespace columns = queries::inspect::read_saga_values_columns;
  const auto values = tx.execute(queries::inspect::read_saga_values, {state.line.no});
  if (!values[0][columns::wanted].is_null()) state.ordered = values[0][columns::wanted].text();
  state.input = values[0][columns::input].bytes();
  state.result = bytes_or_null(values[0][columns::result]);
  if (!values[0][columns::parent].is_null()) state.parent = saga_id::parse(values[0][columns::parent].text());
  state.timeline = timeline_of(read_journal(tx, state.line.no), read_given(tx, state.line.no));
  return state;
}

std::vector<std::string> saga_hosts(database& db) {
  const auto rows = db.read().execute(queries::inspect::list_saga_hosts);
  std::vector<std::string> all;
  for (std::size_t i = 0; i < rows.size(); ++i)
    all.push_back(rows[i][queries::inspect::list_saga_hosts_columns::host].text());
  return all;
}

std::optional<delivered_event> find_delivered(database& db, const std::string& host,
                                              const std::string& event_id) {
  namespace columns = queries::inspect::find_mail_columns;
  const auto rows = db.read().execute(queries::inspect::find_mail, {host, event_id});
  if (rows.empty()) return std::nullopt;
  delivered_event found;
  if (!rows[0][columns::saga].is_null()) {
    found.saga = saga_id::parse(rows[0][columns::saga].text());
    found.entity = rows[0][columns::entity_id].text();
  }
  return found;
}

}  // namespace settle::inspect
