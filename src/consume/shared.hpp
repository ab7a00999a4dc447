// What other rooms ask of consumers, to decide about a dead letter.
#pragma once

#include <string_view>

#include "settle/database.hpp"

namespace settle::inline v0 {

// A key of which messages wait behind one that was given up: see on_exhausted::block_key.
struct blocked_key {
  std::string_view consumer;
  std::string_view topic;
  std::string_view key;
};
// Before the letter's row is changed: no consumer works on the key until the transaction ends. Of several
// keys in the order of their names.
void lock_blocked_key(transaction& tx, const blocked_key& which);
// After it: what waits is due now. Nothing, if the key does not wait for an operator.
void release_blocked_key(transaction& tx, const blocked_key& which);

}  // namespace settle::inline v0
