#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "settle/error.hpp"

namespace settle::inline v0 {
namespace {

// Length of the well-formed sequence at `at` (no overlong forms, no surrogates), or 0.
std::size_t utf8_sequence(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[at + i]); };
  const auto continues = [&](std::size_t n) {
    if (at + n > text.size()) return false;
    for (std::size_t i = 1; i < n; ++i)
      if ((byte(i) & 0xc0) != 0x80) return false;
    return true;
  };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(2) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!continues(3)) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;
    if (first == 0xed && byte(1) > 0x9f) return 0;
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!continues(4)) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

std::string cleaned(std::string_view text, std::size_t bytes_max, std::string_view kept) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto length = utf8_sequence(text, at);
    auto part = length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(at, length);
    const auto byte = static_cast<std::uint8_t>(part[0]);
    if ((byte < 0x20 || byte == 0x7f) && kept.find(part[0]) == std::string_view::npos) part = " ";
    if (out.size() + part.size() > bytes_max) break;
    out += part;
    at += length == 0 ? 1 : length;
  }
  return out;
}

}  // namespace

std::string storable_text(std::string_view text, std::size_t bytes_max) {
  return cleaned(text, bytes_max, "\n\t");
}

std::string one_line(std::string_view text, std::size_t bytes_max) { return cleaned(text, bytes_max, ""); }

bool is_utf8(std::string_view text) {
  std::uint64_t bits = 0;
  std::size_t seen = 0;
  for (; text.size() - seen >= 8; seen += 8) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + seen, sizeof bytes);
    bits |= bytes;
  }
  for (; seen < text.size(); ++seen) bits |= static_cast<unsigned char>(text[seen]);
  if ((bits & 0x8080808080808080U) == 0) return true;  // nearly always
  for (std::size_t at = 0; at < text.size();) {
    const auto length = utf8_sequence(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string_view without_outer_space(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

void check_name(std::string_view text, const name_rule& rule) {
  const auto refuse = [&](const std::string& why) {
    throw error(errc::invalid_name, fmt::format("the {} {}", rule.what, why));
  };
  if (text.empty() && !rule.may_be_empty) refuse("is empty");
  if (text.size() > rule.bytes_max)
    refuse(fmt::format("has {} bytes, {} are allowed", text.size(), rule.bytes_max));
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    if (byte < 0x20 || byte == 0x7f)
      refuse(fmt::format("has the control character 0x{:02x} at byte {}", byte, i));
  }
  if (!is_utf8(text)) refuse("is not valid UTF-8");
}

}  // namespace settle
