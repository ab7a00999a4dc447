// The statements on somebody else's table, made once from its mapping. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "outbox/table_shape.hpp"
#include "sql/own_table.hpp"

namespace settle::outbox {

using sql::quoted_name;                          // an identifier
std::string quoted_text(std::string_view text);  // a literal

struct table_name {
  std::string schema;
  std::string table;
};
// At the first dot: a table's name may hold others.
table_name split_name(std::string_view qualified);
std::string quoted_table(const table_mapping& mapping);

// The column that tells rows that wait from others; empty if all wait.
const std::string& deciding_column(const table_mapping& mapping);
const std::string& order_column(const table_mapping& mapping);
bool has_failed_state(const table_mapping& mapping);

struct table_statements {
  // $1 mask of shares, $2 JSON array of what is held back (see wait_key), $3 how many rows.
  std::string read;
  // The same: whether there is any.
  std::string peek;
  // $1 JSON array of ids, $2 now.
  std::string mark;
  // $1 id, $2 why, $3 attempts with this one. `charge` is empty if the table has no room for either.
  std::string charge;
  std::string give_up;  // empty without a failed state
};
table_statements statements_of(const table_mapping& mapping, const table_shape& shape);

// For those whose table has no index that finds the rows that wait.
std::string index_statement(const table_mapping& mapping);

// The columns of `read`.
struct read_column {
  static constexpr std::size_t id = 0, event_id = 1, topic = 2, type = 3, aggregate_type = 4, key = 5,
                               payload = 6, headers = 7, created_at = 8, attempts = 9;
};

}  // namespace settle::outbox
