// Opening the files that a command works on.
//
// The library creates a file that is missing. For a person who mistyped a path that is a trap: an empty
// outbox says "nothing pending". So every command but migrate looks first and creates nothing.
#pragma once

#include <memory>
#include <string>

#include "settle/database.hpp"

namespace settle::cli {

enum class file_kind { service, broker };

// Throws a failure that says what to do if the file is missing, is no SQLite database, is of the other
// kind, or lacks migrations. Neither creates nor changes it.
void require_ready(const std::string& path, file_kind kind);

// Throws if the open file is of the other kind; true if it is of this kind, false if it is of neither.
bool is_kind(database& db, file_kind kind);

// The same as require_ready, and opens it.
std::unique_ptr<database> open_existing(const std::string& path, file_kind kind, const environment& env = {});

// Throws if one file is given as both.
void require_distinct(const std::string& service, const std::string& broker);

bool same_file(const std::string& left, const std::string& right);

}  // namespace settle::cli
