// Consumer groups of the embedded broker as an operator handles them: what one has not read, removing it,
// setting it back or ahead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "settle/database.hpp"

namespace settle::inline v0::sqlite {

// One group on one topic.
struct group_extent {
  std::string group;
  std::string topic;
  std::int64_t members_alive = 0;
  std::int64_t unread = 0;  // messages
  std::optional<timestamp> oldest = {}, newest = {};
};

// All of them, by name and topic.
std::vector<group_extent> read_groups(database& broker);

struct group_change {
  group_extent before, after;
};

// Which one, and whether to do it: `only_look` rolls back what was done, so that its outcome is known.
struct group_choice {
  std::string group;
  std::string topic = {};  // empty: all of its topics
  bool only_look = false;
};

// Each in one transaction, and throws invalid_argument if a member is alive, or if there is no such group;
// nothing is changed then.

// Nothing is kept for the group any more. If a consumer subscribes under its name once more, it is a new
// group and begins with the oldest message there is.
std::vector<group_change> remove_group(database& broker, const group_choice& which);

// Where it goes on: behind everything that was taken before that time. timestamp::min(): with the oldest
// message; max(): with the next one that comes.
std::vector<group_change> reset_group(database& broker, const group_choice& which, timestamp to);

}  // namespace settle::inline v0::sqlite
