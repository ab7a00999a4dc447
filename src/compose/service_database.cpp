#include "compose/service_database.hpp"

#include "postgres/pooler.hpp"
#include "postgres/settings.hpp"
#include "redis/address.hpp"
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

void check_database(const std::string& where) {
  if (is_postgres(where)) {
    postgres::read_conninfo(where);
    return;
  }
  if (where.empty() || where.find("://") != std::string::npos)
    throw error(errc::invalid_argument,
                "a database is a file, 'postgresql://…' or 'host=… dbname=… user=…'; this is none of them");
}

namespace {

postgres::options postgres_options_of(const database_options& from) {
  return {.env = from.env,
          .connect_timeout = from.connect_timeout,
          .busy_timeout = from.busy_timeout,
          .statement_timeout = from.statement_timeout,
          .connections_max = from.connections_max};
}

}  // namespace

std::unique_ptr<database> open_database(const std::string& where, const database_options& with) {
  check_database(where);
  if (!is_postgres(where))
    return sqlite::open(
        where, {.env = with.env, .busy_timeout = with.busy_timeout, .connections_max = with.connections_max});
  return postgres::open(where, postgres_options_of(with));
}

bool sessions_are_shared(const std::string& where, const database_options& with) {
  return is_postgres(where) && postgres::sessions_are_shared(where, postgres_options_of(with));
}

std::string without_secrets(const std::string& where) {
  return is_postgres(where) ? postgres::without_secrets(where) : where;
}

std::string redis_without_secrets(const std::string& url) {
  const auto at = redis::parse_url(url);
  return "redis://" + at.host + ":" + std::to_string(at.port) + "/" + std::to_string(at.database);
}

}  // namespace settle::compose
