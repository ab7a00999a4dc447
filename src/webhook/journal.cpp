#include "webhook/journal.hpp"

#include <algorithm>
#include <map>

#include "base/json.hpp"
#include "base/text.hpp"
#include "queries/webhook.hpp"
#include "settle/error.hpp"

namespace settle::hooks {
namespace {

constexpr std::size_t error_bytes_max = 2000;

bool is_over(std::string_view status) {
  return status != "RECEIVED" && status != "PARKED" && status != "FAILED";
}

}  // namespace

taken read_taken(result& rows, std::size_t row) {
  // find_event has two columns more.
  namespace columns = queries::webhook::take_due_columns;
  static_assert(columns::all == queries::webhook::take_marked_columns::all);
  static_assert(queries::webhook::find_event_columns::all.starts_with(columns::all));
  taken one;
  const auto cells = rows[row];
  one.row = cells[columns::id].integer();
  one.what.source = cells[columns::source].text();
  one.what.id = cells[columns::event_id].text();
  one.what.type = cells[columns::event_type].text();
  one.what.key = cells[columns::event_key].text();
  if (!cells[columns::provider_at].is_null()) one.what.time = cells[columns::provider_at].time();
  one.what.received_at = cells[columns::received_at].time();
  one.what.headers = attributes_from_json(cells[columns::headers].text());
  one.what.attempts = cells[columns::attempts].integer();
  one.newest_only = cells[columns::newest_only].integer() != 0;
  one.parks = cells[columns::parks].integer();
  one.waits_since = cells[columns::waits_since].time();
  one.passing = cells[columns::passing].integer();
  one.starts = cells[columns::starts].integer();
  one.what.body = rows.take(row, columns::body).take_bytes();
  return one;
}

statement insert_statement(const received& what, bool newest_only, std::string_view status) {
  return {queries::webhook::insert_event,
          {what.source, what.id, what.type, what.key, value(what.time), what.received_at, newest_only,
           to_json(what.headers), blob{what.body}, horizon_margin.count(), status}};
}

std::optional<taken> take_due(transaction& tx, std::string_view source, timestamp now) {
  auto rows = tx.execute(queries::webhook::take_due, {source, now});
  if (rows.empty()) return std::nullopt;
  return read_taken(rows, 0);
}

bool mark_start(database& db, const taken& one, timestamp until) {
  auto tx = db.begin();
  const auto marked = tx.execute(queries::webhook::mark_start, {one.row, one.starts, until}).affected();
  tx.commit("webhook.start");
  return marked > 0;
}

std::optional<taken> take_marked(transaction& tx, const taken& one, timestamp now) {
  auto rows = tx.execute(queries::webhook::take_marked, {one.row, now});
  if (rows.empty()) return std::nullopt;
  return read_taken(rows, 0);
}

void unmark_start(database& db, const taken& one) {
  auto tx = db.begin();
  tx.execute(queries::webhook::unmark_start, {one.row, tx.env().now()});
  tx.commit("webhook.unstart");
}

void set_outcome(transaction& tx, std::int64_t row, std::string_view status, std::optional<timestamp> next,
                 timestamp now, std::string_view why) {
  tx.execute(queries::webhook::set_outcome, {row, status, value(next), is_over(status) ? value(now) : value(),
                                             status == "PARKED", storable_text(why, error_bytes_max)});
}

}  // namespace settle::hooks

namespace settle::inline v0::webhook {
namespace {

namespace finished_columns = queries::webhook::find_finished_columns;

// By source: two workers must not deadlock.
using horizons = std::map<std::string, timestamp>;

// Past everything that is about to be removed, and committed before that begins: a copy looks at the horizon
// first, and may then wait for the removal of its row. If it saw only the old horizon, it would run.
horizons raise_horizons(database& db, timestamp before, std::int64_t events_max) {
  auto tx = db.begin();
  const auto old = tx.execute(queries::webhook::find_finished, {before, events_max});
  horizons raised;
  for (std::size_t i = 0; i < old.size(); ++i) {
    auto& until = raised[old[i][finished_columns::source].text()];
    until = std::max(until, old[i][finished_columns::received_at].time());
  }
  for (const auto& [source, until] : raised) tx.post(queries::webhook::raise_horizon, {source, until});
  if (!raised.empty()) tx.commit("webhook.horizon");
  return raised;
}

}  // namespace

std::optional<journal_entry> find(database& db, std::string_view source, std::string_view event_id) {
  auto tx = db.read();
  auto rows = tx.execute(queries::webhook::find_event, {source, event_id});
  if (rows.empty()) return std::nullopt;
  journal_entry found;
  found.status = rows[0][queries::webhook::find_event_columns::status].text();
  found.last_error = rows[0][queries::webhook::find_event_columns::last_error].text();
  found.what = hooks::read_taken(rows, 0).what;
  found.attempts = found.what.attempts;
  return found;
}

std::vector<journal_line> list(database& db, const journal_filter& which, std::size_t at_most,
                               std::int64_t after) {
  const auto rows =
      db.read().commit_with({queries::webhook::list_events,
                             {after, which.source, which.status, static_cast<std::int64_t>(at_most)}},
                            "");
  namespace columns = queries::webhook::list_events_columns;
  std::vector<journal_line> all;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const auto row = rows[n];
    auto& one = all.emplace_back();
    one.number = row[columns::id].integer();
    one.source = row[columns::source].text();
    one.id = row[columns::event_id].text();
    one.type = row[columns::event_type].text();
    one.key = row[columns::event_key].text();
    one.status = row[columns::status].text();
    one.last_error = row[columns::last_error].text();
    one.attempts = row[columns::attempts].integer();
    one.received_at = row[columns::received_at].time();
    if (!row[columns::next_at].is_null()) one.next_at = row[columns::next_at].time();
  }
  return all;
}

bool retry(database& db, std::string_view source, std::string_view event_id) {
  auto tx = db.begin();
  const auto changed =
      tx.execute(queries::webhook::retry_event, {source, event_id, tx.env().now()}).affected();
  tx.wake_on_commit();
  tx.commit("webhook.retry");
  return changed > 0;
}

std::int64_t expire(database& db, duration keep, std::int64_t events_max) {
  if (keep < hooks::keep_min)
    throw error(errc::invalid_argument,
                "webhook::expire: keep must be at least an hour, or new events would be taken for copies");
  const auto before = db.env().now() - keep;
  const auto until = raise_horizons(db, before, events_max);
  auto tx = db.begin();
  const auto old = tx.execute(queries::webhook::find_finished, {before, events_max});
  json_array ids;
  std::int64_t gone = 0;
  for (std::size_t i = 0; i < old.size(); ++i) {
    const auto raised = until.find(old[i][finished_columns::source].text());
    if (raised == until.end() || raised->second < old[i][finished_columns::received_at].time())
      continue;  // somebody had it; next time
    ids.add(old[i][finished_columns::id].integer());
    ++gone;
  }
  if (gone > 0) tx.post(queries::webhook::delete_events, {ids.text()});
  tx.execute(queries::webhook::delete_keys, {before, events_max});
  tx.commit("webhook.expire");
  return gone;
}

}  // namespace settle::inline v0::webhook
