// What a replay or a discard of dead letters would be about, before anybody does it.
#pragma once

#include <cstdint>
#include <vector>

#include "settle/dead_letter.hpp"

namespace settle::inspect {

struct letters_plan {
  std::int64_t matching = 0;
  std::int64_t left_out = 0;       // they match, but may have been applied long ago: see plan_replay
  std::vector<dead_letter> first;  // the oldest of those that match
};

// `which.status` says whether those that are NEW are meant or those that are REPLAYING, of which only the
// ones count that were asked for at least `asked_ago`. Of those that are NEW it leaves out what may have been
// applied long ago, unless the filter names ids or that reason.
letters_plan plan_replay(database& db, const dead_letter_filter& which, duration asked_ago,
                         std::size_t first_max);

letters_plan plan_discard(database& db, const dead_letter_filter& which, std::size_t first_max);

}  // namespace settle::inspect
