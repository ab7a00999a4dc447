// Results in PostgreSQL's binary format as values.
//
//   bool, int2, int4, int8, oid, xid, xid8                      integer
//   float4, float8                                              real
//   numeric                                                     decimal, all digits kept
//   text, varchar, char, name, json, jsonb, uuid, xml, pg_lsn   text
//   date, time, timetz, interval                                text, as ::text makes it
//   timestamp, timestamptz                                      integer: microseconds since 1970 (UTC)
//   bytea                                                       bytes
//   void                                                        null
//
// Any other type (arrays, ranges, enums, types of extensions) is refused; `::text` makes it text.
#pragma once

#include <string>
#include <string_view>

#include "postgres/handle.hpp"
#include "settle/database.hpp"

namespace settle::inline v0::postgres {

// Throws statement_failed for a type that is not in the list.
result read_result(const PGresult* answer);
// The same, to be decoded by whoever looks at it first: what has committed must not fail for a column of a
// type that is not in the list. Who reads it is told.
result keep_result(result_handle answer);

// How many rows a statement changed; zero for one that only reads.
std::int64_t changed_rows(const PGresult* answer);

// PostgreSQL's base-10000 representation as decimal digits.
std::string numeric_text(std::string_view binary);

}  // namespace settle::inline v0::postgres
