// One event of the journal, in the transaction that has taken it: lock its key, judge its age, run its
// handler.
#pragma once

#include "webhook/journal.hpp"

namespace settle::hooks {

// How long an early one waits, twice as long each time, and when it is given up.
struct park_rule {
  duration wait = std::chrono::seconds(1);
  duration wait_max = std::chrono::minutes(5);
  duration max_age = std::chrono::hours(72);
};

// Pure: whether an event of this time is out of date beside the newest that was applied.
bool is_stale(std::optional<timestamp> of, std::optional<timestamp> newest);

// applied, ignored, stale, parked, or failed for an early one that is given up. Writes what became of it into
// the row, which is APPLIED so far. Throws what the handler throws: roll back then.
outcome apply_taken(transaction& tx, const taken& one, const handler& with, const park_rule& rule);

}  // namespace settle::hooks
