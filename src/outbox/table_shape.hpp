// What somebody else's outbox table looks like, and whether a mapping fits it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "settle/table_relay.hpp"

namespace settle::outbox {

struct table_column {
  std::string name;
  std::string type;  // as a cast writes it
  std::string base;  // the catalogue's name of the type; below a domain, of that
  int modifier = -1;
  int number = 0;
  std::vector<std::string> labels = {};  // of an enum
};

struct table_shape {
  std::int64_t oid = 0;
  std::vector<table_column> columns;

  // Null for an empty name. The name must be there: check_fit has looked.
  const table_column* column(std::string_view name) const;
};

// Throws invalid_argument if the mapping can fit no table.
void check_mapping(const table_mapping& mapping);

// Reads the table from the catalogue. Throws invalid_argument, with the nearest name, if it is not there.
table_shape read_shape(transaction& tx, const table_mapping& mapping, const std::string& database);

// Throws invalid_argument, with the nearest name, if the table lacks a column or one has a type that will not
// do.
void check_fit(const table_mapping& mapping, const table_shape& shape);

// What works, but badly; each is said once, with the statement that mends it if there is one.
struct table_advice {
  std::string_view problem;  // the log's event
  std::string what;
  std::string statement;
};
std::vector<table_advice> judge_table(transaction& tx, const table_mapping& mapping,
                                      const table_shape& shape);

}  // namespace settle::outbox
