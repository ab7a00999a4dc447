// Judges a database and says what to fix. Reads only; each question is asked in a short transaction of its
// own.
//
//   for (const auto& one : doctor::examine(*db))
//     if (one.level == doctor::severity::problem) show(one.title, one.fix);
//
// What the asker's role may not see is a finding too (`not_checked`), not an error. Throws store_unavailable
// if the database cannot be reached.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "settle/database.hpp"

namespace settle::doctor {

enum class severity { ok, warning, problem };
std::string_view to_string(severity of);

struct finding {
  severity level = severity::ok;
  std::string code;         // for machines; never renamed
  std::string title;        // one sentence
  std::string seen = {};    // the evidence
  std::string why = {};     // what it leads to
  std::string advice = {};  // what to decide before the fix, or instead of one
  std::string fix = {};     // statements or commands, one per line; run them as they are
};

using findings = std::vector<finding>;

// What is still normal. The defaults suit most systems; tests provoke findings with smaller ones.
struct limits {
  duration transaction_age = std::chrono::minutes(5);        // an older one is a warning,
  duration transaction_age_problem = std::chrono::hours(1);  // and from here on a problem
  std::int64_t horizon_transactions = 1'000'000;             // how far a standby may hold back vacuum
  std::int64_t slot_bytes = 1LL << 30;                       // log kept for a slot that nobody reads
  duration leaf_age = std::chrono::hours(6);                 // the ring turns every 2 h by default
  std::int64_t log_bytes = 256LL << 20;                      // size of the relays' own tables
  std::int64_t looked_at = 20'000;                           // rows of the outbox that are looked at
  std::int64_t hot_events = 1'000;                           // fewer waiting ones are never called hot
  std::int64_t hot_percent = 50;
  std::int64_t dead_rows = 10'000;        // in a foreign outbox table
  std::int64_t kept_rows = 1'000'000;     // likewise
  std::int64_t bloat_bytes = 64LL << 20;  // likewise; a smaller table is never called bloated
  std::int64_t wal_bytes = 256LL << 20;   // SQLite's write-ahead log
  std::int64_t free_bytes = 1LL << 30;    // on the disk of a SQLite file
  bool check_integrity = false;           // SQLite: read the whole file
};

findings examine(database& db, const limits& normal = {});

// A SQLite file from outside: what opening it would hide or change. False if it should not be opened.
bool examine_file(const std::string& path, const limits& normal, findings& into);

// Only whether applications have a role to publish with, for those who have just migrated: a migration makes
// it if it may. Nothing: they have, or it is not PostgreSQL.
std::optional<finding> examine_publisher_role(database& db);

// Somebody else's outbox table in PostgreSQL, as they would write its name. Throws invalid_argument if there
// is no such table, or if it is one of Settle's own.
findings examine_table(database& db, const std::string& table, const limits& normal = {});

// For a caller who knows that a pooler stands between: no statement could tell.
void note_pooler(findings& into);

bool healthy(const findings& all);  // no problem; warnings may be

}  // namespace settle::doctor
