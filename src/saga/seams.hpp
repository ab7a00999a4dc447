// Decisions of sagas that are known to go wrong, each a function of its own. In the real library every answer
// is the right one; the test library settle_zoo has the bug zoo's (base/zoo.hpp) in their place.
#pragma once

#include <cstdint>
#include <string>

#include "saga/journal.hpp"
#include "settle/database.hpp"

namespace settle::sagas {

// The locks of keys, and which events and waits of them belong together. `numbers` and `keys` are JSON. What
// is read has to begin after the locks are there.
void lock_keys(transaction& tx, const std::string& numbers);
result find_pairs(transaction& tx, const std::string& host, const std::string& keys);

// A row of a journal as a body is told it.
journal_row replayed(journal_row row, timestamp now);

// Whether a step of which nobody knows if it was done has to be undone.
bool doubt_counts_as_done();

// Whether what bodies have seen in a transaction that failed is forgotten.
bool frames_end_with_their_transaction();

// Whether the end of a transaction in doubt is waited for before anything is read.
bool doubt_raises_fences();

// By which the other side tells copies of a call.
std::string key_of_attempt(std::string key_of_call, std::int64_t epoch);

// Writes a saga's row at the end of a tick.
const query& writing_saga();

}  // namespace settle::sagas
