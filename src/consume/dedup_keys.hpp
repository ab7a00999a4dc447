// What messages are told apart by, and which of them cannot be. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consume/fence.hpp"
#include "consume/plan.hpp"
#include "settle/consume.hpp"
#include "settle/error.hpp"

namespace settle::consume {

// The deduplication keys of a batch, in its order. They view the messages where they can.
struct dedup_keys {
  std::vector<std::string_view> all;
  std::vector<std::string> made;
};
dedup_keys dedup_keys_of(batch messages, dedup_key by, const fence_keeper& fences);

// A message that nobody can tell from another one, or that no database can hold, fails before it is claimed.
// Nothing: it is fit. Where its names cannot be stored, they are changed so that the failure can be.
std::optional<error> find_unfit(work& one, dedup_key by);

}  // namespace settle::consume
