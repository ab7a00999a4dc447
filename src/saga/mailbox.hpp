// Where events and the sagas that wait for them meet.
//
// Whoever brings an event or a wait takes the lock of its type and key, writes it down, and then pairs what
// is there: so of an event and a wait that come at the same time the second one finds the first. An event
// that nobody waits for stays. Only a saga's owner writes its journal: others give an event to its wait, and
// wake it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "settle/database.hpp"

namespace settle::sagas {

using event_key = std::pair<std::string, std::string>;  // type and key
using wait_id = std::pair<std::int64_t, int>;           // saga and row of its journal

struct arrived_event {
  std::string type, key, id, payload;
};

struct new_wait {
  wait_id id;
  event_key of;
};

class mailbox {
 public:
  explicit mailbox(std::string host) : host_(std::move(host)) {}

  // Of the events' transaction: those that are new are kept, and wake whom they are for. Returns how many
  // were new.
  std::int64_t deliver(transaction& tx, std::span<const arrived_event> events) const;

  // The same, of those alone that somebody waits for already. Returns how many these were.
  std::int64_t deliver_wanted(transaction& tx, std::span<const arrived_event> events) const;

  // All of these are of a tick, whose sagas have been written to nothing but memory yet. Keys are locked once
  // per transaction, before any of them.
  void lock(transaction& tx, const std::set<event_key>& keys) const;
  // Notes waits and pairs them at once with what has come before. Returns the events of those that are
  // `ours`; others are woken.
  std::map<wait_id, std::string> add(transaction& tx, std::span<const new_wait> waits,
                                     const std::set<std::int64_t>& ours) const;
  // What was given to waits of these sagas.
  static std::map<wait_id, std::string> read(transaction& tx, std::span<const std::int64_t> sagas);
  // A wait is over. True: nothing had come.
  static bool end_wait(transaction& tx, wait_id which);
  // Nobody wants what may have been given to these any more: others may.
  void give_back(transaction& tx, std::span<const new_wait> waits) const;

 private:
  std::int64_t deliver(transaction& tx, std::span<const arrived_event> events, bool if_wanted) const;
  std::map<wait_id, std::string> pair(transaction& tx, const std::set<event_key>& keys,
                                      const std::set<std::int64_t>& ours) const;
  std::string host_;
};

// Removes events that nobody has waited for since then.
std::int64_t sweep_mail(database& db, timestamp before, std::int64_t at_most);

}  // namespace settle::sagas
