#include "inspect/outbox.hpp"

#include <algorithm>

#include "queries/inspect.hpp"

namespace settle::inspect {
namespace {

std::optional<timestamp> earlier(const std::optional<timestamp>& known, timestamp at) {
  return known ? std::min(*known, at) : at;
}

// What no relay has passed yet.
void read_waiting(transaction& tx, std::int64_t upto, outbox_backlog& into) {
  namespace columns = queries::inspect::read_waiting_columns;
  tx.execute(queries::inspect::plan_for_counting);
  const auto rows = tx.execute(queries::inspect::read_waiting, {upto});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const waiting_share one{rows[i][columns::waiting].integer(), rows[i][columns::oldest].time()};
    into.shares[rows[i][columns::share].integer()] = one;
    into.pending += one.events;
    into.oldest = earlier(into.oldest, one.oldest);
  }
}

// What relays have passed and hold back.
void read_held(transaction& tx, std::int64_t upto, outbox_backlog& into) {
  namespace columns = queries::inspect::count_held_columns;
  const auto rows = tx.execute(queries::inspect::count_held, {upto, tx.env().now()});
  const auto row = rows[0];
  into.pending += row[columns::waiting].integer();
  into.delayed = row[columns::delayed].integer();
  into.failed = row[columns::failed].integer();
  if (!row[columns::oldest].is_null()) into.oldest = earlier(into.oldest, row[columns::oldest].time());
}

}  // namespace

std::optional<duration> outbox_backlog::oldest_age(timestamp now) const {
  if (!oldest) return std::nullopt;
  return std::max<duration>(duration::zero(), now - *oldest);
}

outbox_backlog read_backlog(transaction& tx, std::int64_t upto) {
  outbox_backlog found;
  read_waiting(tx, upto, found);
  read_held(tx, upto, found);
  return found;
}

outbox_backlog read_backlog(database& service, std::int64_t upto) {
  auto tx = service.read();
  return read_backlog(tx, upto);
}

outbox_numbers read_numbers(transaction& tx) {
  namespace columns = queries::inspect::read_outbox_total_columns;
  const auto rows = tx.execute(queries::inspect::read_outbox_total);
  outbox_numbers used{rows[0][columns::highest].integer(), std::nullopt};
  if (!rows[0][columns::skipped].is_null()) used.skipped = rows[0][columns::skipped].integer();
  return used;
}

outbox_numbers read_numbers(database& service) {
  auto tx = service.read();
  return read_numbers(tx);
}

std::vector<blocked_share> read_blocked(transaction& tx, const outbox_backlog& backlog) {
  namespace columns = queries::inspect::read_failing_shares_columns;
  const auto rows = tx.execute(queries::inspect::read_failing_shares);
  std::vector<blocked_share> blocked;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto waiting = backlog.shares.find(rows[i][columns::share].integer());
    if (waiting == backlog.shares.end()) continue;
    blocked.push_back({waiting->first, waiting->second.events, rows[i][columns::failures].integer(),
                       rows[i][columns::last_error].text()});
  }
  return blocked;
}

std::vector<blocked_share> read_blocked(database& service) {
  auto tx = service.read();
  return read_blocked(tx, read_backlog(tx, read_numbers(tx).highest));
}

relays read_relays(transaction& tx) {
  namespace columns = queries::inspect::count_relays_columns;
  const auto rows = tx.execute(queries::inspect::count_relays, {tx.env().now()});
  return {rows[0][columns::alive].integer(), rows[0][columns::shares_owned].integer()};
}

}  // namespace settle::inspect
