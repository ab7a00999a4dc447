// How much room the embedded broker has, and who takes it.
//
// A group that nobody reads for keeps its messages for ever. Long before the file is full it would stop
// everybody, so the last tenth is for topics that no such group holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settle/database.hpp"

namespace settle::inline v0::sqlite {

// It has messages to read, and no member.
struct stuck_group {
  std::string group;
  std::string topic;
};

struct broker_room {
  std::int64_t used_bytes = 0;
  std::int64_t bytes_max = 0;
  std::vector<stuck_group> stuck;  // the one with the oldest message first; not asked for while there is room

  bool is_full() const { return used_bytes > bytes_max; }
  bool is_tight() const { return used_bytes > bytes_max / 10 * 9; }
  // Nothing is taken for this topic.
  bool refuses(const std::string& topic) const;
  // Why not, and what to do; also who is in the way of others soon. Empty: there is room.
  std::string trouble(const std::string& file) const;
};

broker_room read_room(transaction& tx, std::int64_t bytes_max);

}  // namespace settle::inline v0::sqlite
