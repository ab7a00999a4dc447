#include <stdexcept>

#include "scratch_databases.hpp"

namespace storm {

scratch_databases::scratch_databases(std::string, const std::vector<std::string>&) {
  throw std::runtime_error("--postgres: this build has no driver for PostgreSQL");
}

std::vector<std::string> scratch_databases::conninfos() const { return {}; }
void scratch_databases::drop() const {}

}  // namespace storm
