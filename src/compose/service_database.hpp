// A service's database, as people name it: a file, or a PostgreSQL. The one place that chooses the driver;
// the programs that take either ask here.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "settle/database.hpp"
#include "settle/postgres.hpp"  // for the defaults; the driver itself may be missing

namespace settle::compose {

// True for `postgres://…`, `postgresql://…` and for libpq's keywords: a text that begins with lower-case
// letters or underscores and `=`, such as `host=db dbname=orders`. Anything else is a file; one whose name
// begins like that is written with its folder, `./a=b.db`.
bool is_postgres(std::string_view where);

struct database_options {
  environment env = {};
  duration busy_timeout = postgres::options{}.busy_timeout;
  // Connections, so transactions, at the same time.
  int connections_max = postgres::options{}.connections_max;
  // Of a server; a file has none of these.
  duration connect_timeout = postgres::options{}.connect_timeout;
  duration statement_timeout = postgres::options{}.statement_timeout;
};

// Nothing connects before the first transaction; a file is created if it is not there. Throws
// invalid_argument, without quoting the text, if it is neither, or if this build has no driver for it: there
// may be a password in it.
std::unique_ptr<database> open_database(const std::string& where, const database_options& with = {});

// For whoever only looks, also through a pooler of any kind.
struct examined_database {
  std::unique_ptr<database> db;
  bool behind_pooler = false;
};
examined_database open_to_examine(const std::string& where);

// Whether a pooler hands the sessions of a server around, so that nothing can be left in one. Of a file: no.
// Connects; throws as a first transaction does.
bool sessions_are_shared(const std::string& where, const database_options& with = {});

// Why this build has no driver for it, and what to do about it; empty: it has one, or it is no database at
// all.
std::string missing_driver(std::string_view where);

// Throws as open_database() does, and opens nothing.
void check_database(const std::string& where);

// The same without passwords, in libpq's keywords; a file as it is. For people to read, never to connect
// with.
std::string without_secrets(const std::string& where);

}  // namespace settle::compose
