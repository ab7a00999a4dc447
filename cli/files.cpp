#include "cli/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "cli/failure.hpp"
#include "compose/service_broker.hpp"
#include "inspect/service.hpp"
#include "sql/migrations.hpp"

namespace settle::cli {
namespace {

namespace fs = std::filesystem;

std::string_view noun(file_kind kind) {
  return kind == file_kind::service ? "service database" : "broker file";
}

std::string_view option_of(file_kind kind) { return kind == file_kind::service ? "--database" : "--broker"; }

[[noreturn]] void not_migrated(const std::string& name, file_kind kind) {
  throw failure(errc::schema_missing,
                fmt::format("{} is not set up as a {}; run `settle migrate`", name, noun(kind)));
}

void require_broker_is_file(const std::string& where) {
  if (compose::is_broker_server(where))
    throw failure(
        errc::invalid_argument,
        fmt::format("this works on the file of an embedded broker, and the broker is {}; a server has "
                    "tools of its own for it",
                    compose::broker_without_secrets(where)));
  if (!compose::is_postgres(where)) return;
  throw failure(errc::invalid_argument,
                "--broker takes a file: the embedded broker is one, also where the service is on PostgreSQL");
}

void require_file(const std::string& path, file_kind kind) {
  std::error_code failed;
  const auto found = fs::status(path, failed);
  if (found.type() == fs::file_type::not_found)
    throw failure(errc::schema_missing,
                  fmt::format("there is no {} at {}; create it with `settle migrate`, or name another place "
                              "with --data or {}",
                              noun(kind), path, option_of(kind)));
  if (found.type() == fs::file_type::directory)
    throw failure(errc::invalid_argument,
                  fmt::format("{} is a folder; {} takes a file", path, option_of(kind)));
  if (failed && found.type() == fs::file_type::none)
    throw failure(errc::store_unavailable, fmt::format("cannot read {}: {}", path, failed.message()));
}

}  // namespace

// Opening a file that is not in WAL mode would switch it, and a read command must leave a foreign
// database as it is. Bytes 18 and 19 of the header say 2 in WAL mode.
bool is_in_wal_mode(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw failure(errc::store_unavailable, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  char header[20] = {};
  in.read(header, sizeof header);
  const auto got = in.gcount();
  if (got == 0) return false;
  constexpr std::string_view magic("SQLite format 3\0", 16);
  if (got < static_cast<std::streamsize>(sizeof header) || std::string_view(header, magic.size()) != magic)
    throw failure(errc::store_corrupt, fmt::format("{} is not a SQLite database", path));
  return header[18] == 2 && header[19] == 2;
}

bool is_kind(database& db, file_kind kind) {
  const bool is_service = inspect::is_service_database(db);
  const bool is_broker = compose::is_broker_file(db);
  const bool wanted = kind == file_kind::service ? is_service : is_broker;
  if (!wanted && (is_service || is_broker))
    throw failure(errc::invalid_argument,
                  fmt::format("{} is a {}, not a {}", db.name(),
                              noun(is_broker ? file_kind::broker : file_kind::service), noun(kind)));
  return wanted;
}

namespace {

void require_schema(database& db, file_kind kind) {
  if (!is_kind(db, kind)) not_migrated(db.name(), kind);
  const auto state = kind == file_kind::service
                         ? sql::read_migration_state(db, sql::service_migrations(db.speaks()))
                         : sql::read_migration_state(db, compose::broker_migrations());
  if (state.applied < state.known)
    throw failure(errc::schema_missing,
                  fmt::format("{} is at schema version {}, this build needs {}; run `settle migrate`",
                              db.name(), state.applied, state.known));
}

}  // namespace

std::unique_ptr<database> open_existing(const std::string& path, file_kind kind,
                                        const compose::database_options& with) {
  if (kind == file_kind::broker) require_broker_is_file(path);
  if (!compose::is_postgres(path)) {
    compose::check_database(path);
    require_file(path, kind);
    if (!is_in_wal_mode(path)) not_migrated(path, kind);
  }
  auto db = compose::open_database(path, with);
  require_schema(*db, kind);
  return db;
}

std::unique_ptr<compose::broker_view> open_broker_view(const std::string& path,
                                                       const compose::broker_options& with,
                                                       const compose::database_options& patience) {
  if (!compose::is_broker_server(path))
    return compose::look_into_broker(open_existing(path, file_kind::broker, patience));
  auto options = with;
  options.server.connect_timeout = std::min(with.server.connect_timeout, patience.connect_timeout);
  return compose::look_into_broker(path, options);
}

std::unique_ptr<database> open_for_publishing(const std::string& path) {
  if (!compose::is_postgres(path)) return open_existing(path, file_kind::service);
  auto db = compose::open_database(path);
  if (!is_kind(*db, file_kind::service)) not_migrated(db->name(), file_kind::service);
  return db;
}

void require_ready(const std::string& path, file_kind kind) { open_existing(path, kind); }

bool same_file(const std::string& left, const std::string& right) {
  std::error_code failed;
  if (fs::equivalent(left, right, failed)) return true;
  return fs::absolute(left, failed).lexically_normal() == fs::absolute(right, failed).lexically_normal();
}

void require_distinct(const std::string& service, const std::string& broker) {
  if (compose::is_broker_server(broker)) return;
  require_broker_is_file(broker);
  if (!compose::is_postgres(service) && same_file(service, broker))
    throw failure(
        errc::invalid_argument,
        fmt::format("{} is given as the service database and as the broker file; they are two files",
                    service));
}

}  // namespace settle::cli
