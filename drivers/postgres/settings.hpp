// A connection string, read and completed with what Settle needs.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace settle::inline v0::postgres {

struct settings {
  std::vector<std::pair<std::string, std::string>> keywords;
  std::string name;  // database, host and port for people; nothing that is secret
};

// Throws invalid_argument, without quoting the string: there may be a password in it.
settings read_conninfo(const std::string& conninfo);

// The connection string in keywords, without what libpq calls a password. Throws as read_conninfo() does.
std::string without_secrets(const std::string& conninfo);

}  // namespace settle::inline v0::postgres
