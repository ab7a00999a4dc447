#include "http/characters.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>

#include "settle/http.hpp"

namespace settle::inline v0::http {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char small = lower(c);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

constexpr bool is_letter(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }

constexpr bool is_name_character(char c) {
  return is_letter(c) || is_digit(c) || std::string_view("-._~!$&'()*+;=").find(c) != std::string_view::npos;
}

bool is_registered_name(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (is_name_character(text[at])) continue;
    if (text[at] != '%' || text.size() - at < 3 || hex_value(text[at + 1]) < 0 || hex_value(text[at + 2]) < 0)
      return false;
    at += 2;
  }
  return true;
}

// What stands between the brackets: an IPv6 address, or one of a version to come.
bool is_literal_address(std::string_view text) {
  in6_addr unused{};
  if (::inet_pton(AF_INET6, std::string(text).c_str(), &unused) == 1) return text.find('\0') == text.npos;
  const auto dot = text.find('.');
  if (dot == text.npos || dot < 2 || lower(text[0]) != 'v') return false;
  const auto version = text.substr(1, dot - 1), address = text.substr(dot + 1);
  return std::ranges::all_of(version, [](char c) { return hex_value(c) >= 0; }) && !address.empty() &&
         std::ranges::all_of(address, [](char c) { return c == ':' || is_name_character(c); });
}

bool is_port(std::string_view text) {
  constexpr std::size_t digits_max = 5;
  if (!std::ranges::all_of(text, is_digit) || text.size() > digits_max) return false;
  std::uint32_t number = 0;
  for (const char c : text) number = number * 10 + static_cast<std::uint32_t>(c - '0');
  return number <= 65535;
}

}  // namespace

bool is_authority(std::string_view text) {
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == text.npos || !is_literal_address(text.substr(1, end - 1))) return false;
    const auto rest = text.substr(end + 1);
    return rest.empty() || (rest.front() == ':' && is_port(rest.substr(1)));
  }
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  if (colon == text.npos) return is_registered_name(name);
  return !name.empty() && is_registered_name(name) && is_port(text.substr(colon + 1));
}

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += plus_is_space && text[at] == '+' ? ' ' : text[at];
      continue;
    }
    if (text.size() - at < 3) return std::nullopt;
    const int high = hex_value(text[at + 1]), low = hex_value(text[at + 2]);
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return out;
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && c != '%')
      out += c;
    else
      (out += '%').append({digits[byte >> 4], digits[byte & 15]});
  }
  return out;
}

}  // namespace settle::inline v0::http
