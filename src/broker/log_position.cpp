#include <algorithm>

#include "base/encoding.hpp"
#include "settle/driver/broker.hpp"
#include "settle/error.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::size_t number_bytes = 8;

}  // namespace

log_position::log_position(std::string_view bytes) {
  if (bytes.size() > bytes_max)
    throw error(errc::invalid_argument,
                "a position of a broker has at most 16 bytes, not " + std::to_string(bytes.size()));
  std::ranges::copy(bytes, bytes_.begin());
  size_ = static_cast<std::uint8_t>(bytes.size());
}

// The highest byte first, so that bytes sort as numbers do.
log_position log_position::of(std::int64_t number) {
  if (number < 0)
    throw error(errc::invalid_argument,
                "a broker gives a message a negative position: positions are 0 or more, and grow");
  log_position made;
  made.size_ = number_bytes;
  for (std::size_t i = 0; i < number_bytes; ++i)
    made.bytes_.at(i) = static_cast<char>(number >> (8 * (number_bytes - 1 - i)));
  return made;
}

std::optional<std::int64_t> log_position::number() const {
  if (size_ != number_bytes) return std::nullopt;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < number_bytes; ++i)
    number = number << 8U | static_cast<unsigned char>(bytes_.at(i));
  if (number >> 63U != 0) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::string log_position::text() const {
  if (const auto made_of = number()) return std::to_string(*made_of);
  return empty() ? std::string() : "0x" + to_hex(bytes());
}

}  // namespace settle::inline v0
