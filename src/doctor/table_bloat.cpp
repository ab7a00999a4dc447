// What a foreign outbox table costs to keep: dead rows, updates, size, age.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/table.hpp"
#include "doctor/words.hpp"

namespace settle::doctor {
namespace {

constexpr std::int64_t row_overhead = 28;  // header and line pointer

void judge_dead_rows(const table_facts& of, const limits& normal, timestamp now, findings& into) {
  const auto& seen = of.activity;
  if (seen.dead < normal.dead_rows || seen.dead * 5 < seen.live) return;
  into.push_back(
      {.level = seen.dead > seen.live ? severity::problem : severity::warning,
       .code = "dead_rows",
       .title = "Dead rows pile up",
       .seen = fmt::format("{} dead rows beside {} live ones; last vacuumed {}", seen.dead, seen.live,
                           seen.vacuumed ? age_text(now - *seen.vacuumed) + " ago" : "never"),
       .why = "polls walk over them; a queue in which rows die all the time needs vacuum much more often "
              "than its "
              "defaults (a fifth of the table)",
       .advice =
           "If vacuum removes nothing, something holds it back: settle doctor without --table says who.",
       .fix = of.partitioned ? fmt::format("vacuum (analyze) {};", of.name)
                             : fmt::format("alter table {0} set (autovacuum_vacuum_scale_factor = 0.01, "
                                           "autovacuum_vacuum_cost_delay = 0);\nvacuum (analyze) {0};",
                                           of.name)});
}

void judge_size(const table_facts& of, const limits& normal, findings& into) {
  const auto& seen = of.activity;
  const auto needed = seen.live * (seen.row_bytes + row_overhead);
  if (seen.row_bytes == 0 || seen.bytes < normal.bloat_bytes || seen.bytes < 4 * needed) return;
  into.push_back(
      {.level = severity::warning,
       .code = "bloat",
       .title = "The table is much larger than its rows",
       .seen = fmt::format("{}, of which the rows in use need about {}", size_text(seen.bytes),
                           size_text(needed)),
       .why = "vacuum makes room inside the file and seldom gives it back",
       .advice = "Nobody can read or write the table while this runs; pg_repack does the same beside them.",
       .fix = fmt::format("vacuum (full, analyze) {};", of.name)});
}

// An update that changes an indexed column, or finds no room on its page, writes every index again.
void judge_updates(const table_facts& of, const limits& normal, findings& into) {
  const auto& seen = of.activity;
  if (seen.updated < normal.dead_rows || seen.updated_in_place * 2 >= seen.updated) return;
  const bool roomy = of.fillfactor < 100 || of.partitioned;
  into.push_back({.level = severity::warning,
                  .code = "costly_updates",
                  .title = "Marking a row as published rewrites all of its indexes",
                  .seen = fmt::format(
                      "{} updates for {} inserted rows, {} % of them in place (HOT); fillfactor {}",
                      seen.updated, seen.inserted, seen.updated_in_place * 100 / seen.updated, of.fillfactor),
                  .why = "every event costs a second row version, and an entry in each index",
                  .advice = roomy ? "The status is indexed, so updates cannot be in place: have as few other "
                                    "indexes as you can, or "
                                    "delete rows that are done."
                                  : "It helps new pages only, and not where the status itself is indexed: "
                                    "then have as few other "
                                    "indexes as you can, or delete rows that are done.",
                  .fix = roomy ? "" : fmt::format("alter table {} set (fillfactor = 70);", of.name)});
}

// Only where the table itself says that a row is done: a status that is not the first one may also be a
// failure.
std::string slice_of_done_rows(const table_facts& of) {
  const auto& status = of.shape.status;
  if (of.partitioned || !status) return {};
  std::string done;
  if (holds_time(*status)) done = fmt::format("{} < now() - interval '7 days'", status->quoted);
  if (status->type == "boolean") done = status->quoted;
  if (status->type == "boolean" && of.shape.time)
    done += fmt::format(" and {} < now() - interval '7 days'", of.shape.time->quoted);
  if (done.empty()) return {};
  return fmt::format("delete from {0} where ctid = any (array(select ctid from {0} where {1} limit 10000));",
                     of.name, done);
}

}  // namespace

void judge_bloat(const table_facts& of, const limits& normal, timestamp now, findings& into) {
  const auto before = into.size();
  judge_dead_rows(of, normal, now, into);
  judge_size(of, normal, into);
  judge_updates(of, normal, into);
  if (into.size() == before)
    into.push_back({.code = "fine",
                    .title = fmt::format("No bloat: {}, {} live and {} dead rows",
                                         size_text(of.activity.bytes), of.activity.live, of.activity.dead)});
}

void judge_retention(const table_facts& of, const limits& normal, findings& into) {
  if (of.activity.live < normal.kept_rows) {
    into.push_back({.code = "fine", .title = fmt::format("{} rows are kept", of.activity.live)});
    return;
  }
  const auto fix = slice_of_done_rows(of);
  into.push_back(
      {.level = severity::warning,
       .code = "rows_kept",
       .title = "Old rows are never removed",
       .seen = fmt::format("{} rows are kept ({}); {} were ever deleted", of.activity.live,
                           size_text(of.activity.bytes), of.activity.deleted),
       .why = "indexes, backups and vacuum grow with them, for rows that nobody reads again",
       .advice = of.partitioned ? "Detach and drop partitions of which every row is published."
                 : fix.empty()
                     ? "Nothing in the table says since when a row is published: ask its reader what may go."
                     : "Repeat it until it deletes nothing, then let it run every few minutes.",
       .fix = fix});
}

void judge_storage(const table_facts& of, findings& into) {
  if (of.unlogged)
    into.push_back({.level = severity::problem,
                    .code = "unlogged_table",
                    .title = "The table is unlogged",
                    .why = "a crash of the server empties it, published or not",
                    .fix = fmt::format("alter table {} set logged;", of.name)});
  if (of.autovacuum_disabled)
    into.push_back({.level = severity::problem,
                    .code = "autovacuum_disabled",
                    .title = "autovacuum is switched off for the table",
                    .why = "dead rows are never removed",
                    .fix = fmt::format("alter table {} reset (autovacuum_enabled);", of.name)});
}

}  // namespace settle::doctor
