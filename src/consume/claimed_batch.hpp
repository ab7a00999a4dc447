// A batch in its open transaction, and what is to be done with each of its messages.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "consume/dedup_keys.hpp"
#include "consume/plan.hpp"
#include "consume/retention.hpp"
#include "settle/dead_letter.hpp"

namespace settle::consume {

struct claimed_batch : plan {
  dedup_keys keys = {};
  std::vector<recorded> fresh = {};                 // whose claims were new
  value fresh_keys = {};                            // their list
  std::map<std::size_t, dead_letter> letters = {};  // of the replays
  std::vector<work*> put_off = {};                  // if any, nothing of this is to be done
};

}  // namespace settle::consume
