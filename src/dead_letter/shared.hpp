// What other rooms ask of dead letters: writing one, and running a replay of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "settle/dead_letter.hpp"

namespace settle::inline v0 {

// In the transaction that gives up: the row, and the event on "<topic>.dlq". The letter's id.
std::int64_t write_dead_letter(transaction& tx, const dead_letter& of);
// After the commit: the counter, and the log line, which whoever gives up many may leave out for some.
void report_dead_letter(const environment& env, const dead_letter& of, bool with_line = true);

// The consumer a message is addressed to; empty: to everybody, as usual.
std::string_view replay_address(const message& m);

// Whether this message is one that replay() has sent from this database: it names a letter that is here, for
// the letter's own consumer, topic and message. Any other one only looks like it.
bool is_replay(transaction& tx, const message& m);

// In the transaction that runs it: the letter that this message replays, which counts as REPLAYED from now
// on. Nothing: it is a copy of a replay that has already ended.
std::optional<dead_letter> take_replay(transaction& tx, const message& m);

// In a transaction before that one, if a process may have ended over it: the letter counts that it begins
// once more, and its history says so. Returns how many have ended over this replay by now, the one before the
// first note included.
std::int64_t note_replay_start(transaction& tx, const message& m);

// In a transaction after that one was rolled back: the letter is NEW again, with one more attempt.
void replay_failed(transaction& tx, const message& m, const failed_attempt& how);

}  // namespace settle::inline v0
