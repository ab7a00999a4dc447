#include "settle/ids.hpp"

#include <chrono>

namespace settle::inline v0 {
namespace {

constexpr char hex[] = "0123456789abcdef";
constexpr bool dash_before(std::size_t byte) { return byte == 4 || byte == 6 || byte == 8 || byte == 10; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string uuid::text() const {
  std::string out;
  out.reserve(36);
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    if (dash_before(i)) out += '-';
    out += hex[bytes_[i] >> 4];
    out += hex[bytes_[i] & 15];
  }
  return out;
}

std::optional<uuid> uuid::parse(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  bytes_type bytes{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (dash_before(i) && text[at++] != '-') return std::nullopt;
    const int high = hex_digit(text[at++]);
    const int low = hex_digit(text[at++]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return uuid(bytes);
}

uuid id_source::next() {
  const auto now_ms = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(time_.now().time_since_epoch()).count());
  const std::uint64_t noise = random_.next();
  std::uint64_t ms;
  std::uint16_t counter;
  {
    const std::scoped_lock lock(mutex_);
    if (now_ms > last_ms_) {
      last_ms_ = now_ms;
      counter_ = static_cast<std::uint16_t>(noise & 0x3ff);  // leaves room to count up within the ms
    } else if (++counter_ > 0xfff) {
      ++last_ms_;  // 4,096 ids in one millisecond: borrow the next one
      counter_ = 0;
    }
    ms = last_ms_;
    counter = counter_;
  }
  const std::uint64_t tail = random_.next();
  uuid::bytes_type b{};
  for (int i = 0; i < 6; ++i) b[i] = static_cast<std::uint8_t>(ms >> (40 - 8 * i));
  b[6] = static_cast<std::uint8_t>(0x70 | counter >> 8);
  b[7] = static_cast<std::uint8_t>(counter);
  for (int i = 0; i < 8; ++i) b[8 + i] = static_cast<std::uint8_t>(tail >> (56 - 8 * i));
  b[8] = static_cast<std::uint8_t>((b[8] & 0x3f) | 0x80);
  return uuid(b);
}

}  // namespace settle
