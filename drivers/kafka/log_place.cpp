#include "kafka/log_place.hpp"

#include <algorithm>
#include <string>

#include "settle/error.hpp"

namespace settle::inline v0::kafka {
namespace {

constexpr std::size_t time_bytes = 6, partition_bytes = 3, offset_bytes = 7;
constexpr std::size_t place_bytes = time_bytes + partition_bytes + offset_bytes;
static_assert(place_bytes <= log_position::bytes_max);

void append(std::string& to, std::uint64_t number, std::size_t bytes) {
  for (auto left = bytes; left > 0; --left) to += static_cast<char>(number >> (8 * (left - 1)) & 0xff);
}

std::int64_t number_in(std::string_view bytes) {
  std::int64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

}  // namespace

log_position position_of(const log_place& of) {
  std::string bytes;
  append(bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(of.time_ms, 0)), time_bytes);
  append(bytes, static_cast<std::uint64_t>(of.partition), partition_bytes);
  append(bytes, static_cast<std::uint64_t>(of.offset), offset_bytes);
  return log_position(bytes);
}

log_place place_of(const log_position& of) {
  const auto bytes = of.bytes();
  if (bytes.size() != place_bytes)
    throw error(errc::invalid_argument, "this is no place in a topic of a Kafka");
  return {number_in(bytes.substr(0, time_bytes)),
          static_cast<int>(number_in(bytes.substr(time_bytes, partition_bytes))),
          number_in(bytes.substr(time_bytes + partition_bytes))};
}

}  // namespace settle::inline v0::kafka
