#include "sql/own_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"
#include "settle/error.hpp"
#include "settle/event.hpp"

namespace settle::sql {
namespace {

constexpr int shown_name_bytes = 32;

const std::string& content_of(std::string_view word, std::span<const blank> with) {
  const auto found = std::ranges::find(with, word, &blank::first);
  SETTLE_CHECK(found != with.end(), "every blank of a query is filled in");
  return found->second;
}

std::string fill(std::string_view text, std::span<const blank> with) {
  std::string out;
  while (true) {
    const auto open = text.find('{');
    out += text.substr(0, open);
    if (open == std::string_view::npos) return out;
    const auto close = text.find('}', open);
    SETTLE_CHECK(close != std::string_view::npos, "a blank of a query ends");
    out += content_of(text.substr(open + 1, close - open - 1), with);
    text.remove_prefix(close + 1);
  }
}

}  // namespace

std::string doubled(std::string_view text, char mark) {
  std::string out;
  for (const char c : text) {
    if (c == mark) out += mark;
    out += c;
  }
  return out;
}

std::string quoted_name(std::string_view name) { return '"' + doubled(name, '"') + '"'; }

void check_identifier(std::string_view name, const std::string& what) {
  check_name(name, {what, identifier_bytes_max});
}

std::string checked_table(std::string_view table, const std::string& what) {
  const auto dot = table.find('.');
  if (dot == std::string_view::npos) {
    check_identifier(table, what);
    return quoted_name(table);
  }
  const auto schema = table.substr(0, dot);
  const auto name = table.substr(dot + 1);
  check_identifier(schema, what + ": the schema");
  check_identifier(name, what + ": the table");
  return quoted_name(schema) + "." + quoted_name(name);
}

// Drivers show the beginning of a name; padded, it never ends within a letter of the user's.
filled_query::filled_query(const query& text, std::span<const blank> with)
    : name_(fmt::format("{:_<{}}", text.name, shown_name_bytes)),
      sqlite_(fill(text.sqlite, with)),
      postgres_(fill(text.postgres, with)) {
  for (const auto& [unused, content] : with) name_ += ' ' + content;
}

std::string key_text(const value& key, const std::string& what) {
  if (const auto* number = std::get_if<std::int64_t>(&key.variant())) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&key.variant())) {
    check_name(*text, {what, event_limits::key_bytes_max});
    return *text;
  }
  if (const auto* number = std::get_if<decimal>(&key.variant())) return number->digits;
  throw error(errc::invalid_argument, fmt::format("{} must be an integer or a text", what));
}

}  // namespace settle::sql
