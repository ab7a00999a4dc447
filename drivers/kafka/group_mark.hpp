// What a group keeps beside its offsets: the name of the log that they are about. Pure.
//
// A group that takes a partition for the first time makes up a name and commits it as the metadata of its
// offset. Kafka forgets offsets together with their topic, so a topic that was made anew has another name;
// and whoever resets the offsets of a group with Kafka's own tools gets another one too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kafka/cluster.hpp"

namespace settle::inline v0::kafka {

// "settle:6f1c9a2be1d40378"
std::string make_mark(std::uint64_t random);
bool is_mark(std::string_view metadata);

// The name by which consumers know the log.
std::string log_name(const std::string& topic, int partition, std::string_view mark);

// Where to begin, and whether messages are missing.
struct start {
  std::int64_t offset = 0;
  std::int64_t missing_from = 0;  // no gap: equal
  std::int64_t missing_up_to = 0;
  bool is_other_log = false;  // it ends before the offset: somebody made it anew, or cut it off
  bool has_gap() const { return is_other_log || missing_from != missing_up_to; }
};

// `committed` is the next offset that the group wants.
start start_at(std::int64_t committed, const extent& of);

}  // namespace settle::inline v0::kafka
