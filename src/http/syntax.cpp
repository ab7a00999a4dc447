#include <algorithm>

#include "http/shared.hpp"

namespace settle::inline v0::http {
namespace {

bool is_token_character(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const bool is_digit = c >= '0' && c <= '9';
  return is_letter || is_digit || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

bool is_field_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || c == '\t';
  });
}

std::string_view fault_of(const response& answer) {
  if (answer.status < 200 || answer.status > 599) return "the status is not one of 200 to 599";
  for (const auto one : answer.headers) {
    if (!is_token(one.name)) return "the name of a header is no token";
    if (!is_field_value(one.value))
      return "the value of a header has a line break or another control character";
  }
  return {};
}

}  // namespace settle::inline v0::http
