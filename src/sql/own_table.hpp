// Statements on a table of the user's: written in .sql files with blanks for its names, {table} or {key},
// which are filled in once. Names are checked and quoted; values are always parameters.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "settle/database.hpp"

namespace settle::sql {

// With every `mark` doubled.
std::string doubled(std::string_view text, char mark);
std::string quoted_name(std::string_view name);

// PostgreSQL cuts longer names silently, and then two of them are one.
inline constexpr std::size_t identifier_bytes_max = 63;

// Throws invalid_name unless it is 1–63 bytes of UTF-8 without control characters.
void check_identifier(std::string_view name, const std::string& what);

// A table's name, alone or after that of its schema and a dot; throws as check_identifier.
std::string checked_table(std::string_view table, const std::string& what);

using blank = std::pair<std::string_view, std::string>;  // name without braces, and what stands there

// A named query with its blanks filled in.
class filled_query {
 public:
  filled_query(const query& text, std::span<const blank> with);

  query get() const { return {name_, sqlite_, postgres_}; }

 private:
  std::string name_;  // differs where the texts do: statements are kept by it
  std::string sqlite_;
  std::string postgres_;
};

// A key as a parameter is an integer or a text; throws invalid_argument or invalid_name. As text, since logs
// have one column for all tables.
std::string key_text(const value& key, const std::string& what);

}  // namespace settle::sql
