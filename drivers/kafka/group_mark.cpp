#include "kafka/group_mark.hpp"

#include <fmt/format.h>

namespace settle::inline v0::kafka {
namespace {

constexpr std::string_view prefix = "settle:";

}  // namespace

std::string make_mark(std::uint64_t random) { return fmt::format("{}{:016x}", prefix, random); }

bool is_mark(std::string_view metadata) {
  return metadata.starts_with(prefix) && metadata.size() == prefix.size() + 16;
}

std::string log_name(const std::string& topic, int partition, std::string_view mark) {
  return fmt::format("kafka/{}/{}/{}", topic, partition, mark.substr(prefix.size()));
}

start start_at(std::int64_t committed, const extent& of) {
  if (committed > of.high) return {of.low, committed, committed, true};
  if (committed < of.low) return {of.low, committed, of.low, false};
  return {committed, committed, committed, false};
}

}  // namespace settle::inline v0::kafka
