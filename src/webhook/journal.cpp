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
  taken one;
  const auto cells = rows[row];
  one.row = cells[0].integer();
  one.what.source = cells[1].text();
  one.what.id = cells[2].text();
  one.what.type = cells[3].text();
  one.what.key = cells[4].text();
  if (!cells[5].is_null()) one.what.time = cells[5].time();
  one.what.received_at = cells[6].time();
  one.what.headers = attributes_from_json(cells[7].text());
  one.what.attempts = cells[9].integer();
  one.newest_only = cells[10].integer() != 0;
  one.parks = cells[11].integer();
  one.waits_since = cells[12].time();
  one.passing = cells[13].integer();
  one.starts = cells[14].integer();
  one.what.body = rows.take(row, 8).take_bytes();
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

// By source: two workers must not deadlock.
using horizons = std::map<std::string, timestamp>;

// Past everything that is about to be removed, and committed before that begins: a copy looks at the horizon
// first, and may then wait for the removal of its row. If it saw only the old horizon, it would run.
horizons raise_horizons(database& db, timestamp before, std::int64_t events_max) {
  auto tx = db.begin();
  const auto old = tx.execute(queries::webhook::find_finished, {before, events_max});
  horizons raised;
  for (std::size_t i = 0; i < old.size(); ++i) {
    auto& until = raised[old[i][1].text()];
    until = std::max(until, old[i][2].time());
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
  found.status = rows[0][15].text();
  found.last_error = rows[0][16].text();
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
  std::vector<journal_line> all;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const auto row = rows[n];
    auto& one = all.emplace_back();
    one.number = row[0].integer();
    one.source = row[1].text();
    one.id = row[2].text();
    one.type = row[3].text();
    one.key = row[4].text();
    one.status = row[5].text();
    one.last_error = row[6].text();
    one.attempts = row[7].integer();
    one.received_at = row[8].time();
    if (!row[9].is_null()) one.next_at = row[9].time();
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
    const auto raised = until.find(old[i][1].text());
    if (raised == until.end() || raised->second < old[i][2].time()) continue;  // somebody had it; next time
    ids.add(old[i][0].integer());
    ++gone;
  }
  if (gone > 0) tx.post(queries::webhook::delete_events, {ids.text()});
  tx.execute(queries::webhook::delete_keys, {before, events_max});
  tx.commit("webhook.expire");
  return gone;
}

}  // namespace settle::inline v0::webhook
