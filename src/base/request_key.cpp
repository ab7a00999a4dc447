#include "settle/request_key.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "settle/error.hpp"
#include "settle/ids.hpp"

namespace settle::inline v0 {
namespace {

bool printable(char c) { return c >= ' ' && c <= '~'; }
bool needs_quotes(char c) { return c == ' ' || c == ',' || c == '"'; }

parsed_request_key refuse(key_refusal why) { return {.refused = why}; }

parsed_request_key accept(std::string_view text) {
  if (text.empty()) return refuse(key_refusal::empty);
  return {.key = request_key(text)};
}

parsed_request_key parse_bare(std::string_view text) {
  if (text.size() > request_key_bytes_max) return refuse(key_refusal::too_long);
  if (!std::ranges::all_of(text, printable)) return refuse(key_refusal::not_printable);
  if (std::ranges::any_of(text, needs_quotes)) return refuse(key_refusal::needs_quotes);
  return accept(text);
}

// `text` begins after the opening quote.
parsed_request_key parse_quoted(std::string_view text) {
  std::string key;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (!printable(c)) return refuse(key_refusal::not_printable);
    if (c == '"') return i + 1 == text.size() ? accept(key) : refuse(key_refusal::trailing_text);
    if (c == '\\') {
      if (++i == text.size()) break;
      c = text[i];
      if (c != '"' && c != '\\') return refuse(key_refusal::bad_escape);
    }
    if (key.size() == request_key_bytes_max) return refuse(key_refusal::too_long);
    key += c;
  }
  return refuse(key_refusal::not_closed);
}

}  // namespace

request_key request_key::make(const environment& env) { return request_key(env.ids->next().text()); }

request_key::request_key(std::string_view text) : text_(text) {
  if (text.empty() || text.size() > request_key_bytes_max || !std::ranges::all_of(text, printable))
    throw error(errc::invalid_argument, "a request key has 1 to 255 printable ASCII characters");
}

std::string request_key::header(key_form form) const {
  if (form == key_form::bare) {
    if (std::ranges::any_of(text_, needs_quotes))
      throw error(errc::invalid_argument, "a request key with a space, comma or quote cannot be sent bare");
    return text_;
  }
  std::string value = "\"";
  for (const char c : text_) {
    if (c == '"' || c == '\\') value += '\\';
    value += c;
  }
  return value + '"';
}

std::string_view to_string(key_refusal why) {
  switch (why) {
    case key_refusal::none:
      return "none";
    case key_refusal::empty:
      return "empty";
    case key_refusal::too_long:
      return "too_long";
    case key_refusal::not_printable:
      return "not_printable";
    case key_refusal::not_closed:
      return "not_closed";
    case key_refusal::bad_escape:
      return "bad_escape";
    case key_refusal::trailing_text:
      return "trailing_text";
    case key_refusal::needs_quotes:
      return "needs_quotes";
  }
  return "unknown";
}

parsed_request_key parse_request_key(std::string_view header_value) {
  const auto text = without_outer_space(header_value);
  if (text.empty()) return refuse(key_refusal::empty);
  return text.front() == '"' ? parse_quoted(text.substr(1)) : parse_bare(text);
}

}  // namespace settle::inline v0
