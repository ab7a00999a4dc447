// The journal's statements.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "settle/webhook.hpp"

namespace settle::hooks {

using namespace settle::webhook;

// By so much the provider's clock may be ahead of ours.
constexpr duration horizon_margin = std::chrono::minutes(10);
// With less than the margin everything new would be before the horizon, and with little more what its
// provider sends a second time after a short outage.
constexpr duration keep_min = std::chrono::hours(1);

// An event of the journal that a transaction has taken.
struct taken {
  std::int64_t row = 0;
  received what;
  bool newest_only = false;
  std::int64_t parks = 0;
  timestamp waits_since{};
  std::int64_t passing = 0;  // of its attempts, those that were expected to pass
  std::int64_t starts = 0;   // see mark_start
};
taken read_taken(result& rows, std::size_t row);

// As `RECEIVED` for a worker, or as `APPLIED` for whoever applies it in this transaction.
statement insert_statement(const received& what, bool newest_only, std::string_view status);

// The next due one of a source, if there is one.
std::optional<taken> take_due(transaction& tx, std::string_view source, timestamp now);

// A mark with a commit of its own before the handler runs; whatever is written about the event afterwards
// removes it. One that stays has been left by a process that ended, or could not write. Others leave the
// event alone until then; after that they may mark it too, and the transaction of whoever was first takes
// nothing.
bool mark_start(database& db, const taken& one, timestamp until);
std::optional<taken> take_marked(transaction& tx, const taken& one, timestamp now);
void unmark_start(database& db, const taken& one);  // by a process that stops as it should

// What becomes of one that was taken and not applied. `next` is for those that wait.
void set_outcome(transaction& tx, std::int64_t row, std::string_view status, std::optional<timestamp> next,
                 timestamp now, std::string_view why = {});

}  // namespace settle::hooks
