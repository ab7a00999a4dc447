#include "sql/columns.hpp"

#include <cstdint>
#include <type_traits>

#include "base/check.hpp"

namespace settle::inline v0 {
namespace {

template <class Number>
void append_number(std::string& to, Number number) {
  const auto bits = static_cast<std::make_unsigned_t<Number>>(number);
  for (int shift = 8 * static_cast<int>(sizeof bits) - 8; shift >= 0; shift -= 8)
    to += static_cast<char>(bits >> shift & 0xffU);
}

void append_element(std::string& to, std::string_view bytes) {
  append_number(to, static_cast<std::int32_t>(bytes.size()));
  to.append(bytes);
}

// An element as it goes over the line, and what PostgreSQL's catalogue calls its type.
struct writer {
  std::string& to;

  void operator()(const blob& data) const { append_element(to, data.bytes); }
  void operator()(const std::string& text) const { append_element(to, text); }
  void operator()(std::int64_t number) const {
    append_number(to, static_cast<std::int32_t>(sizeof number));
    append_number(to, number);
  }
  void operator()(const auto&) const { SETTLE_CHECK(false, "an array is of bytes, texts or integers"); }
};

std::int32_t type_of(const value& element) {
  constexpr std::int32_t bytea = 17, int8 = 20, text = 25;
  if (std::holds_alternative<blob>(element.variant())) return bytea;
  return std::holds_alternative<std::string>(element.variant()) ? text : int8;
}

value column_of(std::span<const parameters> rows, std::size_t column) {
  const auto& first = rows.front()[column];
  if (first.is_null()) return {};
  blob made;
  for (const auto part : {1, 0, type_of(first), static_cast<std::int32_t>(rows.size()), 1})
    append_number(made.bytes, static_cast<std::int32_t>(part));  // dimensions, nulls, type, size, first index
  for (const auto& row : rows) {
    SETTLE_CHECK(row[column].variant().index() == first.variant().index(), "a column is of one type");
    std::visit(writer{made.bytes}, row[column].variant());
  }
  return made;
}

}  // namespace

parameters columns_of(std::span<const parameters> rows) {
  parameters columns;
  columns.reserve(rows.front().size());
  for (std::size_t n = 0; n < rows.front().size(); ++n) columns.push_back(column_of(rows, n));
  return columns;
}

}  // namespace settle::inline v0
