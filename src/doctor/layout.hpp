// What somebody else's outbox table is, read from the names and types of its columns.
//
//   status     a column says what is done: status, published_at, processed, …
//   debezium   aggregatetype, aggregateid, type, payload and nothing else to go by: read from the server's
//   log cursor     a reader remembers the highest number or time that it has seen
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace settle::doctor {

struct column {
  std::string name;
  std::string quoted;  // as it stands in statements
  std::string type;
  bool not_null = false;
  std::string initial = {};  // its default, as an expression
  bool numbered = false;     // serial or identity
  std::int64_t cache = 1;    // of its sequence
  std::string sequence = {};
};

enum class layout_kind { status, debezium, cursor };

struct layout {
  layout_kind kind = layout_kind::cursor;
  std::optional<column> status;
  std::optional<column> key;          // order is kept within it
  std::optional<column> event;        // the event's id
  std::optional<column> number;       // serial or identity
  std::optional<column> time;         // when it was written
  std::optional<column> transaction;  // holds a transaction id
};

layout read_layout(const std::vector<column>& columns);

// The condition that a row is not published yet; empty if the column does not tell.
std::string pending_condition(const column& status);

bool holds_time(const column& of);

}  // namespace settle::doctor
