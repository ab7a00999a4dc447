// Keys and indexes of a foreign outbox table.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/table.hpp"

namespace settle::doctor {
namespace {

std::string concurrently(const table_facts& of) { return of.partitioned ? "" : "concurrently "; }

bool unique_alone(const table_facts& of, const column& which) {
  return std::ranges::any_of(of.indexes, [&](const table_index& one) {
    return one.unique && one.condition.empty() && one.columns == std::vector{which.name};
  });
}

bool has_primary_key(const table_facts& of) { return std::ranges::any_of(of.indexes, &table_index::primary); }

void judge_primary_key(const table_facts& of, findings& into) {
  if (has_primary_key(of)) return;
  const auto& candidate = of.shape.number ? of.shape.number : of.shape.event;
  into.push_back(
      {.level = severity::problem,
       .code = "no_primary_key",
       .title = "There is no primary key",
       .why = "a row cannot be named, so a relay cannot mark or delete exactly one; logical replication "
              "refuses updates",
       .advice = "Writers wait while it is built.",
       .fix = candidate ? fmt::format("alter table {} add primary key ({});", of.name, candidate->quoted)
                        : fmt::format(
                              "alter table {} add column id bigint generated always as identity primary key;",
                              of.name)});
}

void judge_event_id(const table_facts& of, findings& into) {
  if (!of.shape.event) {
    into.push_back(
        {.level = severity::warning,
         .code = "no_event_id",
         .title = "Events have no id of their own",
         .seen = "looked for event_id, message_id and the like",
         .why = "every relay sends an event twice now and then, and consumers know the copy by its id. A "
                "number of the row will do only while the table is never restored or emptied",
         .advice = "This rewrites the table; writers wait meanwhile.",
         .fix = fmt::format("alter table {} add column event_id uuid not null default gen_random_uuid();",
                            of.name)});
    return;
  }
  if (unique_alone(of, *of.shape.event)) return;
  into.push_back({.level = severity::warning,
                  .code = "event_id_not_unique",
                  .title = fmt::format("{} is not unique", of.shape.event->quoted),
                  .why = "of two events with one id consumers drop the second",
                  .advice = "If duplicates are found, look at them first.",
                  .fix = fmt::format("create unique index {}on {} ({});", concurrently(of), of.name,
                                     of.shape.event->quoted)});
}

}  // namespace

void judge_keys(const table_facts& of, findings& into) {
  const auto before = into.size();
  judge_primary_key(of, into);
  judge_event_id(of, into);
  if (into.size() == before)
    into.push_back({.code = "fine", .title = fmt::format("{} identifies an event", of.shape.event->quoted)});
}

void judge_pending_index(const table_facts& of, findings& into) {
  if (of.shape.kind != layout_kind::status) return;
  const auto& status = *of.shape.status;
  const bool served = std::ranges::any_of(of.indexes, [&](const table_index& one) {
    return one.for_status || one.columns.front() == status.name;
  });
  if (served) {
    into.push_back({.code = "fine", .title = "An index finds what is not published"});
    return;
  }
  const auto order = of.shape.number ? of.shape.number : of.shape.time ? of.shape.time : of.shape.event;
  const auto by = order ? order->quoted : status.quoted;
  const auto condition = pending_condition(status);
  into.push_back(
      {.level = severity::problem,
       .code = "no_pending_index",
       .title = "No index finds what is not published",
       .seen = fmt::format("no index begins with {0} or is restricted by it", status.quoted),
       .why = "every poll reads the whole table, the published rows too, and gets slower with each of them",
       .fix = condition.empty() ? fmt::format("create index {}on {} ({}, {});", concurrently(of), of.name,
                                              status.quoted, by)
                                : fmt::format("create index {}on {} ({}) where {};", concurrently(of),
                                              of.name, by, condition)});
}

}  // namespace settle::doctor
