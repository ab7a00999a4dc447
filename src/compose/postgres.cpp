#include "compose/postgres.hpp"

#include "postgres/pooler.hpp"
#include "postgres/settings.hpp"
#include "settle/postgres.hpp"

namespace settle::compose::on_postgres {
namespace {

postgres::options options_of(const database_options& from) {
  return {.env = from.env,
          .connect_timeout = from.connect_timeout,
          .busy_timeout = from.busy_timeout,
          .statement_timeout = from.statement_timeout,
          .connections_max = from.connections_max};
}

}  // namespace

std::string missing() { return {}; }

void check(const std::string& conninfo) { postgres::read_conninfo(conninfo); }

std::unique_ptr<database> open(const std::string& conninfo, const database_options& with) {
  return postgres::open(conninfo, options_of(with));
}

std::unique_ptr<database> open_unprepared(const std::string& conninfo) {
  return postgres::open(conninfo, {.prepared_statements = false});
}

bool behind_pooler(const std::string& conninfo) { return postgres::behind_pooler(conninfo); }

bool sessions_are_shared(const std::string& conninfo, const database_options& with) {
  return postgres::sessions_are_shared(conninfo, options_of(with));
}

std::string without_secrets(const std::string& conninfo) { return postgres::without_secrets(conninfo); }

}  // namespace settle::compose::on_postgres
