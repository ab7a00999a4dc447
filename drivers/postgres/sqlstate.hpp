// PostgreSQL's error codes as settle errors.
#pragma once

#include <string>
#include <string_view>

#include "postgres/handle.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::postgres {

// The code for a SQLSTATE, by the longest entry of the table that fits.
errc code_of_sqlstate(std::string_view sqlstate);

// What the server said about one statement.
struct server_failure {
  errc code = errc::statement_failed;
  std::string sqlstate;           // empty: libpq's own words, because the server said nothing
  std::string text;               // never the DETAIL, which quotes rows
  bool in_function = false;       // raised by something that the statement called
  bool session_ended = false;     // FATAL or PANIC
  bool session_outdated = false;  // another session would fare better

  error as_error(std::string_view during, std::string_view database) const;
};
server_failure read_failure(const PGresult* answer);

// The same for a connection that was not made; libpq has only text for it, which must have been built with
// PQERRORS_VERBOSE.
server_failure read_connect_failure(std::string_view message);

}  // namespace settle::inline v0::postgres
