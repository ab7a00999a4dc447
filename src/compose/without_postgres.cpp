// For builds with -DSETTLE_POSTGRES=OFF.
#include "compose/postgres.hpp"
#include "settle/error.hpp"

namespace settle::compose::on_postgres {
namespace {

[[noreturn]] void refuse() { throw error(errc::invalid_argument, missing()); }

}  // namespace

std::string missing() {
  return "this is a PostgreSQL, and this build of Settle has no driver for it: build Settle with "
         "-DSETTLE_POSTGRES=ON, which needs libpq, or name a file";
}

void check(const std::string&) { refuse(); }
std::unique_ptr<database> open(const std::string&, const database_options&) { refuse(); }
std::unique_ptr<database> open_unprepared(const std::string&) { refuse(); }
bool behind_pooler(const std::string&) { refuse(); }
bool sessions_are_shared(const std::string&, const database_options&) { refuse(); }
// Nothing of it: what is a password can only libpq tell.
std::string without_secrets(const std::string&) { return "a PostgreSQL"; }

}  // namespace settle::compose::on_postgres
