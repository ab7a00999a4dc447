// A saga's journal as people read it: what it did, one entry per step, wait or decision. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "saga/journal.hpp"

namespace settle::inspect {

enum class saga_act { step, call, sleep, wait, child, version, undo_begun, undo, ordered, held };
std::string_view to_string(saga_act of);

enum class saga_end {
  none,  // under way, or waiting
  done,  // also: the event came, the time is over, it is undone
  refused,
  unknown,    // nobody knows yet whether it was done
  timed_out,  // the event did not come
};
std::string_view to_string(saga_end of);

struct saga_entry {
  int n = 0;  // of the row that opened it
  saga_act what{};
  std::string name = {};  // with the path of its branch, and its number if it is not the first of this name
  timestamp at{};         // when it began; of a local step, when it was done
  std::optional<timestamp> ended_at = {};  // of what takes time
  saga_end end = saga_end::none;
  bool was_unknown = false;                // for a while: an answer was lost, or a process died over it
  bool undone = false;                     // later
  std::optional<timestamp> until = {};     // of a sleep or wait
  std::string key = {};                    // of the event that it waits for
  std::optional<std::string> result = {};  // what it returned; the event
  std::string why = {};                    // refused or unknown; of an undo, a hold, an order: its reason
  std::string by = {};                     // the event was given by hand: by whom and why
};

using saga_timeline = std::vector<saga_entry>;

// `given`: by the row of a wait, the id of the event that was given to it.
saga_timeline timeline_of(const sagas::journal& of, const std::map<int, std::string>& given = {});

// Ids of events that a person has delivered, with who and why in them.
std::string id_by_hand(const std::string& unique, const std::string& who, const std::string& reason);
// "ann: the call centre has confirmed it"; empty: it came by itself.
std::string hand_of(const std::string& event_id);

}  // namespace settle::inspect
