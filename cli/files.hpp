// Opening the stores that a command works on: a service's database, in a file or on a server, and the
// broker's file.
//
// The library creates a file that is missing. For a person who mistyped a path that is a trap: an empty
// outbox says "nothing pending". So every command but migrate looks first and creates nothing.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "compose/service_broker.hpp"
#include "compose/service_database.hpp"
#include "settle/database.hpp"

namespace settle::cli {

enum class file_kind { service, broker };

// Throws a failure that says what to do if the store is missing, is no SQLite database, is of the other
// kind, or lacks migrations. Neither creates nor changes it.
void require_ready(const std::string& path, file_kind kind);

// Throws if the open store is of the other kind; true if it is of this kind, false if it is of neither.
bool is_kind(database& db, file_kind kind);

// The same as require_ready, and opens it.
std::unique_ptr<database> open_existing(const std::string& path, file_kind kind,
                                        const compose::database_options& with = {});

// A broker to look into: its file, opened as above, or a server.
std::unique_ptr<compose::broker_view> open_broker_view(const std::string& path,
                                                       const compose::broker_options& with,
                                                       const compose::database_options& patience = {});

// The service's database for one event. On a server the role of an application will do, which may publish but
// not read what was migrated: whether the tables are there is all that is looked at.
std::unique_ptr<database> open_for_publishing(const std::string& path);

// False if opening the file would switch it to WAL mode, so that it cannot be one of ours. Throws if it is no
// SQLite database.
bool is_in_wal_mode(const std::string& path);

// Throws if the broker is not a file, or if one file is given as both.
void require_distinct(const std::string& service, const std::string& broker);

bool same_file(const std::string& left, const std::string& right);

}  // namespace settle::cli
