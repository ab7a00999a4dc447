// Does a foreign outbox table lose events, and does it keep their order?
#include <fmt/format.h>

#include <algorithm>

#include "doctor/table.hpp"

namespace settle::doctor {
namespace {

void fine(findings& into, std::string title) {
  into.push_back({.level = severity::ok, .code = "fine", .title = std::move(title)});
}

// Most of what was inserted is gone again: readers take what is there, whatever its number.
bool works_as_a_queue(const table_facts& of) {
  return of.activity.inserted > 0 && of.activity.deleted * 2 >= of.activity.inserted;
}

const column* cursor_of(const table_facts& of) {
  if (of.shape.number) return &*of.shape.number;
  return of.shape.time ? &*of.shape.time : nullptr;
}

// Index builds on a partitioned table cannot be concurrent.
std::string concurrently(const table_facts& of) { return of.partitioned ? "" : "concurrently "; }

finding lost_late_commits(const table_facts& of, const column& cursor) {
  const bool number = cursor.numbered;
  const auto transaction = of.shape.transaction ? of.shape.transaction->quoted : std::string("xid");
  return {
      .level = severity::problem,
      .code = "late_commits_lost",
      .title = "A reader that remembers the last row it saw loses late commits",
      .seen = fmt::format("nothing says what is published, so readers go by {}, which is {}", cursor.quoted,
                          number ? "drawn when a row is inserted, not when it commits"
                                 : "the time at which a transaction began, not that of its commit"),
      .why =
          "A inserts 7, B inserts 8, B commits, the reader sees 8 and remembers it, A commits: 7 is there, "
          "and "
          "nobody asks for it any more. It happens in silence, and the more often the longer transactions "
          "are",
      .advice = fmt::format(
          "Then read only below the oldest transaction that is still open: select … from {0} where {1} < "
          "pg_snapshot_xmin(pg_current_snapshot()) and ({1}, {2}) > ($1, $2) order by {1}, {2}. That loses "
          "nothing, "
          "but a long transaction delays everybody, and transactions of one key may come against their "
          "order: "
          "settle.publish has neither problem.",
          of.name, transaction, cursor.quoted),
      .fix = fmt::format("alter table {0} add column {1} xid8 not null default pg_current_xact_id();\n"
                         "create index {2}on {0} ({1}, {3});",
                         of.name, transaction, concurrently(of), cursor.quoted)};
}

}  // namespace

void judge_loss(const table_facts& of, findings& into) {
  if (of.shape.kind == layout_kind::status)
    return fine(into,
                fmt::format("Late commits are found: {} says what is published, as long as readers go by it "
                            "alone and not by a number too",
                            of.shape.status->quoted));
  if (of.shape.kind == layout_kind::debezium) {
    if (of.logical_slots > 0)
      return fine(into, "Late commits are found: a log reader (Debezium) sees rows as they commit");
    into.push_back(
        {.level = severity::warning,
         .code = "no_log_reader",
         .title = "Debezium's layout, but nothing reads the server's log",
         .seen = "no logical replication slot belongs to this database",
         .why = "rows that nobody reads pile up; a program that polls such a table by time loses late "
                "commits",
         .advice = "Start the connector, or let a relay of Settle read the table."});
    return;
  }
  const auto* cursor = cursor_of(of);
  if (of.shape.transaction)
    return fine(into, fmt::format("Late commits can be found: {} holds the transaction id",
                                  of.shape.transaction->quoted));
  if (works_as_a_queue(of)) return fine(into, "Late commits are found: rows are deleted when they are done");
  if (cursor != nullptr) return into.push_back(lost_late_commits(of, *cursor));
  into.push_back({.level = severity::problem,
                  .code = "nothing_to_read_by",
                  .title = "No column tells what is published, nor in which order",
                  .seen = "neither a status, nor a number, nor a time",
                  .why = "a relay cannot know where it stands, so it sends rows again or not at all",
                  .fix = fmt::format("alter table {} add column published_at timestamptz;", of.name)});
}

void judge_order(const table_facts& of, findings& into) {
  const auto before = into.size();
  if (!of.shape.key)
    into.push_back(
        {.level = severity::warning,
         .code = "no_key",
         .title = "No column names the key",
         .seen = "looked for aggregate_id, key, partition_key, entity_id and the like",
         .why = "events of one thing (an order) cannot be kept in order, or everything has to be published "
                "one after the other",
         .fix = fmt::format("alter table {} add column aggregate_id text not null default '';", of.name)});
  if (of.shape.kind != layout_kind::debezium && !of.shape.number)
    into.push_back(
        {.level = of.shape.time ? severity::warning : severity::problem,
         .code = "no_number",
         .title = "Nothing numbers the rows",
         .seen = of.shape.time ? fmt::format("only {} gives an order", of.shape.time->quoted)
                               : "no number and no time",
         .why = of.shape.time ? "now() is when a transaction began: of two transactions of one key the one "
                                "that came second "
                                "may carry the earlier time; and times can be equal"
                              : "events of one key are published in any order",
         .advice =
             "This rewrites the table; writers wait meanwhile. Insert after you have locked the row that the "
             "event is about: then numbers follow the order of commits of that row.",
         .fix = fmt::format("alter table {} add column position bigint generated always as identity;",
                            of.name)});
  if (of.shape.number && of.shape.number->cache > 1)
    into.push_back(
        {.level = severity::problem,
         .code = "sequence_cached",
         .title = "Numbers are drawn in advance",
         .seen = fmt::format("{} has cache {}", of.shape.number->sequence, of.shape.number->cache),
         .why = "each session uses up its own stock, so of one key the later event may have the lower number",
         .fix = fmt::format("alter sequence {} cache 1;", of.shape.number->sequence)});
  for (const auto& [trigger, function] : of.notifying)
    into.push_back(
        {.level = severity::problem,
         .code = "notify_in_transaction",
         .title = "A trigger notifies inside the transaction",
         .seen = fmt::format("trigger {} calls {}", trigger, function),
         .why = "a commit with a NOTIFY takes a lock that is the whole server's: commits of all writers "
                "queue, and throughput falls to a third or less",
         .advice = "Poll, or notify from another session after the commit; Settle's relays do.",
         .fix = fmt::format("drop trigger {} on {};", trigger, of.name)});
  if (into.size() == before)
    fine(into, fmt::format("Order can be kept: {} is the key{}", of.shape.key->quoted,
                           of.shape.number ? fmt::format(", {} the order", of.shape.number->quoted) : ""));
}

}  // namespace settle::doctor
