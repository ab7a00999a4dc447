// What waits in the outbox, and why: on both databases.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/checks.hpp"
#include "doctor/words.hpp"
#include "queries/doctor.hpp"

namespace settle::doctor {
namespace {

struct waiting_share {
  std::int64_t share;
  std::int64_t events;
  timestamp oldest;
  std::string key;  // that most of them have
  std::int64_t of_key;
};

std::vector<waiting_share> read_waiting(transaction& tx, const limits& normal) {
  namespace columns = queries::doctor::waiting_events_columns;
  const auto rows = tx.execute(queries::doctor::waiting_events, {normal.looked_at});
  std::vector<waiting_share> all;
  for (std::size_t i = 0; i < rows.size(); ++i)
    all.push_back({rows[i][columns::share].integer(), rows[i][columns::events].integer(),
                   rows[i][columns::oldest].time(), rows[i][columns::key].text(),
                   rows[i][columns::events_of_key].integer()});
  return all;
}

std::int64_t sum(const std::vector<waiting_share>& of) {
  std::int64_t events = 0;
  for (const auto& one : of) events += one.events;
  return events;
}

// Only so many rows are looked at, so a long queue is longer than its count.
std::string waiting_text(std::int64_t events, const limits& normal) {
  return (events >= normal.looked_at ? "at least " : "") + counted(events, "event");
}

void find_nobody_relays(transaction& tx, const limits& normal, findings& into) {
  const auto waiting = read_waiting(tx, normal);
  if (waiting.empty()) return;
  const auto now = tx.env().now();
  if (tx.execute(queries::doctor::live_relays, {now})[0][queries::doctor::live_relays_columns::alive]
          .integer() > 0)
    return;
  const auto oldest = std::ranges::min_element(waiting, {}, &waiting_share::oldest)->oldest;
  into.push_back({.level = severity::problem,
                  .code = "no_relay",
                  .title = "Events wait and no relay is alive",
                  .seen = fmt::format("{} not published, the oldest for {}; no relay holds a lease",
                                      waiting_text(sum(waiting), normal), age_text(now - oldest)),
                  .why = "nothing leaves the outbox",
                  .advice = "Start your relay, the daemon settled, or this, with the same options:",
                  .fix = "settle relay"});
}

void find_hot_share(transaction& tx, const limits& normal, findings& into) {
  const auto waiting = read_waiting(tx, normal);
  const auto all = sum(waiting);
  if (waiting.empty() || all < normal.hot_events) return;
  const auto& hot = waiting.front();
  if (hot.events * 100 < all * normal.hot_percent) return;
  const bool one_key = hot.of_key * 100 >= hot.events * normal.hot_percent && !hot.key.empty();
  into.push_back(
      {.level = severity::warning,
       .code = "hot_lane",
       .title = one_key ? "Most waiting events have one key" : "Most waiting events are in one share",
       .seen = fmt::format(
           "{} of {} are in share {}{}", hot.events, waiting_text(all, normal), hot.share,
           one_key ? fmt::format(", and {} of these have the key '{}'", hot.of_key, hot.key) : std::string()),
       .why =
           "events of one key are published one after the other by one relay; more relays do not help them",
       .advice =
           "Choose a finer key where order does not matter across it (an order's id, not its tenant's), or "
           "none where it does not matter at all. If the share fails, see its error first."});
}

void find_failing_shares(transaction& tx, const limits&, findings& into) {
  namespace columns = queries::doctor::failing_shares_columns;
  const auto rows = tx.execute(queries::doctor::failing_shares);
  for (std::size_t i = 0; i < rows.size(); ++i)
    into.push_back({.level = severity::problem,
                    .code = "failing_share",
                    .title = fmt::format("Share {} of the outbox cannot be published",
                                         rows[i][columns::share].integer()),
                    .seen = fmt::format("{} since it last moved: {}",
                                        counted(rows[i][columns::failures].integer(), "failed attempt"),
                                        rows[i][columns::last_error].text()),
                    .why = "its keys wait behind the event that fails",
                    .advice = "Mend what the error names. Relays try again by themselves."});
}

void find_failed_events(transaction& tx, const limits&, findings& into) {
  namespace columns = queries::doctor::failed_events_columns;
  const auto rows = tx.execute(queries::doctor::failed_events);
  if (rows.empty()) return;
  const auto& row = rows[0];
  into.push_back(
      {.level = severity::problem,
       .code = "failed_events",
       .title = "Events were given up",
       .seen = fmt::format("{} FAILED; the first is {} of key '{}' for {}, after {} {} ago: {}",
                           counted(row[columns::events].integer(), "event"), row[columns::event_type].text(),
                           row[columns::aggregate_id].text(), row[columns::topic].text(),
                           counted(row[columns::attempts].integer(), "attempt"),
                           age_text(tx.env().now() - row[columns::failed_at].time()),
                           row[columns::last_error].text()),
       .why = "nobody tries them again by itself, and where strict order was asked for their keys wait",
       .advice = "Mend what the error names, then requeue them with `settle outbox requeue --all` or as here "
                 "stands.",
       .fix = row[columns::fix].text()});
}

constexpr check all[] = {
    {"relays", "Nothing waits without a relay", find_nobody_relays},
    {"the keys of waiting events", "No key holds most of what waits", find_hot_share},
    {"failed events", "No event was given up", find_failed_events},
    {"failed attempts", "No share of the outbox fails", find_failing_shares},
};

}  // namespace

std::span<const check> outbox_checks() { return all; }

}  // namespace settle::doctor
