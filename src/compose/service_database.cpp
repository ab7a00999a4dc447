#include "compose/service_database.hpp"

#include "compose/postgres.hpp"
#include "settle/error.hpp"
#include "settle/sqlite.hpp"

namespace settle::compose {

bool is_postgres(std::string_view where) {
  if (where.starts_with("postgres://") || where.starts_with("postgresql://")) return true;
  const auto word = where.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  if (word == 0 || word == std::string_view::npos) return false;
  const auto next = where.find_first_not_of(' ', word);
  return next != std::string_view::npos && where[next] == '=';
}

std::string missing_driver(std::string_view where) {
  return is_postgres(where) ? on_postgres::missing() : std::string();
}

void check_database(const std::string& where) {
  if (is_postgres(where)) return on_postgres::check(where);
  if (where.empty() || where.find("://") != std::string::npos)
    throw error(errc::invalid_argument,
                "a database is a file, 'postgresql://…' or 'host=… dbname=… user=…'; this is none of them");
}

std::unique_ptr<database> open_database(const std::string& where, const database_options& with) {
  check_database(where);
  if (is_postgres(where)) return on_postgres::open(where, with);
  return sqlite::open(
      where, {.env = with.env, .busy_timeout = with.busy_timeout, .connections_max = with.connections_max});
}

examined_database open_to_examine(const std::string& where) {
  check_database(where);
  const bool pooled = is_postgres(where) && on_postgres::behind_pooler(where);
  return {pooled ? on_postgres::open_unprepared(where) : open_database(where), pooled};
}

bool sessions_are_shared(const std::string& where, const database_options& with) {
  return is_postgres(where) && on_postgres::sessions_are_shared(where, with);
}

std::string without_secrets(const std::string& where) {
  return is_postgres(where) ? on_postgres::without_secrets(where) : where;
}

}  // namespace settle::compose
